// Package types has the types of WIT that Go does not have.
//
// It has the interface of the public module of the same name, and is written by `toolwit build`. DO NOT EDIT!
package types

// Unit is the type of a value without information.
type Unit struct{}

// The tags of an Option.
const (
	OptionNone = 0
	OptionSome = 1
)

// Option is a value that may be missing.
type Option[T any] struct {
	tag   uint8
	value T
}

// Some returns an option with a value.
func Some[T any](value T) Option[T] { return Option[T]{OptionSome, value} }

// None returns an option without a value.
func None[T any]() Option[T] { return Option[T]{} }

// Tag returns OptionNone or OptionSome.
func (o Option[T]) Tag() uint8 { return o.tag }

// IsSome returns whether there is a value.
func (o Option[T]) IsSome() bool { return o.tag == OptionSome }

// IsNone returns whether there is no value.
func (o Option[T]) IsNone() bool { return o.tag == OptionNone }

// Some returns the value, and panics if there is none.
func (o Option[T]) Some() T {
	if o.IsNone() {
		panic("the option has no value")
	}
	return o.value
}

// SomeOr returns the value, or another one if there is none.
func (o Option[T]) SomeOr(other T) T {
	if o.IsNone() {
		return other
	}
	return o.value
}

// The tags of a Result.
const (
	ResultOk  = 0
	ResultErr = 1
)

// Result is a value or an error.
type Result[T, E any] struct {
	tag uint8
	ok  T
	err E
}

// Ok returns a result with a value.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{tag: ResultOk, ok: value} }

// Err returns a result with an error.
func Err[T, E any](err E) Result[T, E] { return Result[T, E]{tag: ResultErr, err: err} }

// Tag returns ResultOk or ResultErr.
func (r Result[T, E]) Tag() uint8 { return r.tag }

// IsOk returns whether the result is a value.
func (r Result[T, E]) IsOk() bool { return r.tag == ResultOk }

// IsErr returns whether the result is an error.
func (r Result[T, E]) IsErr() bool { return r.tag == ResultErr }

// Ok returns the value, and panics if the result is an error.
func (r Result[T, E]) Ok() T {
	if r.IsErr() {
		panic("the result is an error")
	}
	return r.ok
}

// Err returns the error, and panics if the result is a value.
func (r Result[T, E]) Err() E {
	if r.IsOk() {
		panic("the result is not an error")
	}
	return r.err
}

// The tuples of WIT.
type (
	Tuple1[T0 any] struct {
		F0 T0
	}
	Tuple2[T0, T1 any] struct {
		F0 T0
		F1 T1
	}
	Tuple3[T0, T1, T2 any] struct {
		F0 T0
		F1 T1
		F2 T2
	}
	Tuple4[T0, T1, T2, T3 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
	}
	Tuple5[T0, T1, T2, T3, T4 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
		F4 T4
	}
	Tuple6[T0, T1, T2, T3, T4, T5 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
		F4 T4
		F5 T5
	}
	Tuple7[T0, T1, T2, T3, T4, T5, T6 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
		F4 T4
		F5 T5
		F6 T6
	}
	Tuple8[T0, T1, T2, T3, T4, T5, T6, T7 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
		F4 T4
		F5 T5
		F6 T6
		F7 T7
	}
	Tuple9[T0, T1, T2, T3, T4, T5, T6, T7, T8 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
		F4 T4
		F5 T5
		F6 T6
		F7 T7
		F8 T8
	}
	Tuple10[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9 any] struct {
		F0 T0
		F1 T1
		F2 T2
		F3 T3
		F4 T4
		F5 T5
		F6 T6
		F7 T7
		F8 T8
		F9 T9
	}
	Tuple11[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10 any] struct {
		F0  T0
		F1  T1
		F2  T2
		F3  T3
		F4  T4
		F5  T5
		F6  T6
		F7  T7
		F8  T8
		F9  T9
		F10 T10
	}
	Tuple12[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11 any] struct {
		F0  T0
		F1  T1
		F2  T2
		F3  T3
		F4  T4
		F5  T5
		F6  T6
		F7  T7
		F8  T8
		F9  T9
		F10 T10
		F11 T11
	}
	Tuple13[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12 any] struct {
		F0  T0
		F1  T1
		F2  T2
		F3  T3
		F4  T4
		F5  T5
		F6  T6
		F7  T7
		F8  T8
		F9  T9
		F10 T10
		F11 T11
		F12 T12
	}
	Tuple14[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13 any] struct {
		F0  T0
		F1  T1
		F2  T2
		F3  T3
		F4  T4
		F5  T5
		F6  T6
		F7  T7
		F8  T8
		F9  T9
		F10 T10
		F11 T11
		F12 T12
		F13 T13
	}
	Tuple15[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14 any] struct {
		F0  T0
		F1  T1
		F2  T2
		F3  T3
		F4  T4
		F5  T5
		F6  T6
		F7  T7
		F8  T8
		F9  T9
		F10 T10
		F11 T11
		F12 T12
		F13 T13
		F14 T14
	}
	Tuple16[T0, T1, T2, T3, T4, T5, T6, T7, T8, T9, T10, T11, T12, T13, T14, T15 any] struct {
		F0  T0
		F1  T1
		F2  T2
		F3  T3
		F4  T4
		F5  T5
		F6  T6
		F7  T7
		F8  T8
		F9  T9
		F10 T10
		F11 T11
		F12 T12
		F13 T13
		F14 T14
		F15 T15
	}
)

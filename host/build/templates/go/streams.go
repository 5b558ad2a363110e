package types

import (
	"runtime"
	"unsafe"

	"go.bytecodealliance.org/pkg/wit/async"
	wit "go.bytecodealliance.org/pkg/wit/runtime"
)

// StreamVtable has the functions of streams with items of one type.
type StreamVtable[T any] struct {
	Size         uint32
	Align        uint32
	Read         func(handle int32, items unsafe.Pointer, length uint32) uint32
	Write        func(handle int32, items unsafe.Pointer, length uint32) uint32
	CancelRead   func(handle int32) uint32
	CancelWrite  func(handle int32) uint32
	DropReadable func(handle int32)
	DropWritable func(handle int32)
	Lift         func(item unsafe.Pointer) T
	Lower        func(pinner *runtime.Pinner, value T, item unsafe.Pointer) func()
}

// FutureVtable has the functions of futures with a value of one type.
type FutureVtable[T any] struct {
	Size         uint32
	Align        uint32
	Read         func(handle int32, value unsafe.Pointer) uint32
	Write        func(handle int32, value unsafe.Pointer) uint32
	CancelRead   func(handle int32) uint32
	CancelWrite  func(handle int32) uint32
	DropReadable func(handle int32)
	DropWritable func(handle int32)
	Lift         func(item unsafe.Pointer) T
	Lower        func(pinner *runtime.Pinner, value T, item unsafe.Pointer) func()
}

// An end of a stream or future, which is dropped when it is collected.
type end struct {
	handle *wit.Handle
	drop   func(handle int32)
}

func makeEnd(value int32, drop func(handle int32)) *end {
	e := &end{wit.MakeHandle(value), drop}
	runtime.AddCleanup(e, func(handle *wit.Handle) { dropHandle(handle, drop) }, e.handle)
	return e
}

func dropHandle(handle *wit.Handle, drop func(handle int32)) {
	if value := handle.TakeOrNil(); value != 0 {
		drop(value)
	}
}

// Drop gives the end up.
func (e *end) Drop() { dropHandle(e.handle, e.drop) }

// TakeHandle moves the end. Only bindings call it.
func (e *end) TakeHandle() int32 { return e.handle.Take() }

// SetHandle sets the handle of an end that was moved. Only bindings call it.
func (e *end) SetHandle(handle int32) { e.handle.Set(handle) }

// StreamReader is the end of a stream from which items are read.
type StreamReader[T any] struct {
	*end
	vtable  *StreamVtable[T]
	isEnded bool
}

// MakeStreamReader wraps a handle.
func MakeStreamReader[T any](vtable *StreamVtable[T], handle int32) *StreamReader[T] {
	return &StreamReader[T]{end: makeEnd(handle, vtable.DropReadable), vtable: vtable}
}

// WriterDropped returns whether the stream has ended.
func (r *StreamReader[T]) WriterDropped() bool { return r.isEnded }

// Read waits for items, stores them in a slice, and returns their number. It is 0 when the stream has ended.
func (r *StreamReader[T]) Read(items []T) uint32 {
	if len(items) == 0 {
		panic("the slice for the items is empty")
	}
	handle := r.handle.Take()
	defer r.handle.Set(handle)
	if r.isEnded {
		return 0
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	buffer := unsafe.Pointer(unsafe.SliceData(items))
	if r.vtable.Lift == nil {
		pinner.Pin(buffer)
	} else {
		buffer = wit.Allocate(&pinner, uintptr(r.vtable.Size)*uintptr(len(items)), uintptr(r.vtable.Align))
	}
	end, count := async.Wait(r.vtable.Read(handle, buffer, uint32(len(items))), handle)
	r.isEnded = end == async.Dropped
	if r.vtable.Lift != nil {
		for i := range items[:count] {
			items[i] = r.vtable.Lift(unsafe.Add(buffer, uintptr(i)*uintptr(r.vtable.Size)))
		}
	}
	return count
}

// StreamWriter is the end of a stream to which items are written. Drop ends the stream.
type StreamWriter[T any] struct {
	*end
	vtable    *StreamVtable[T]
	isDropped bool
}

// MakeStreamWriter wraps a handle.
func MakeStreamWriter[T any](vtable *StreamVtable[T], handle int32) *StreamWriter[T] {
	return &StreamWriter[T]{end: makeEnd(handle, vtable.DropWritable), vtable: vtable}
}

// ReaderDropped returns whether nobody reads the stream any more.
func (w *StreamWriter[T]) ReaderDropped() bool { return w.isDropped }

// Write waits until items have been read, and returns their number, which may be smaller than that of the slice.
func (w *StreamWriter[T]) Write(items []T) uint32 {
	handle := w.handle.Take()
	defer w.handle.Set(handle)
	if w.isDropped {
		return 0
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	buffer := unsafe.Pointer(unsafe.SliceData(items))
	var restore []func()
	if w.vtable.Lower == nil {
		if len(items) > 0 {
			pinner.Pin(buffer)
		}
	} else {
		buffer = wit.Allocate(&pinner, uintptr(w.vtable.Size)*uintptr(len(items)), uintptr(w.vtable.Align))
		for i, item := range items {
			place := unsafe.Add(buffer, uintptr(i)*uintptr(w.vtable.Size))
			restore = append(restore, w.vtable.Lower(&pinner, item, place))
		}
	}
	end, count := async.Wait(w.vtable.Write(handle, buffer, uint32(len(items))), handle)
	w.isDropped = end == async.Dropped
	for i := int(count); i < len(restore); i++ {
		restore[i]()
	}
	return count
}

// WriteAll writes all items, and returns how many were read before the reader gave the stream up.
func (w *StreamWriter[T]) WriteAll(items []T) uint32 {
	var written uint32
	for int(written) < len(items) && !w.isDropped {
		written += w.Write(items[written:])
	}
	return written
}

// FutureReader is the end of a future from which its value is read, once.
type FutureReader[T any] struct {
	*end
	vtable *FutureVtable[T]
}

// MakeFutureReader wraps a handle.
func MakeFutureReader[T any](vtable *FutureVtable[T], handle int32) *FutureReader[T] {
	return &FutureReader[T]{end: makeEnd(handle, vtable.DropReadable), vtable: vtable}
}

// Read waits for the value.
func (r *FutureReader[T]) Read() T {
	handle := r.handle.Take()
	defer r.vtable.DropReadable(handle)
	var pinner runtime.Pinner
	defer pinner.Unpin()
	buffer := wit.Allocate(&pinner, uintptr(r.vtable.Size), uintptr(r.vtable.Align))
	if end, _ := async.Wait(r.vtable.Read(handle, buffer), handle); end != async.Completed {
		panic("the future has no value")
	}
	if r.vtable.Lift != nil {
		return r.vtable.Lift(buffer)
	}
	var value T
	if r.vtable.Size > 0 {
		value = *(*T)(buffer)
	}
	return value
}

// FutureWriter is the end of a future to which its value is written, once.
type FutureWriter[T any] struct {
	*end
	vtable *FutureVtable[T]
}

// MakeFutureWriter wraps a handle.
func MakeFutureWriter[T any](vtable *FutureVtable[T], handle int32) *FutureWriter[T] {
	return &FutureWriter[T]{end: makeEnd(handle, vtable.DropWritable), vtable: vtable}
}

// Write waits until the value has been read. It returns false if nobody reads the future any more.
func (w *FutureWriter[T]) Write(value T) bool {
	handle := w.handle.Take()
	defer w.vtable.DropWritable(handle)
	var pinner runtime.Pinner
	defer pinner.Unpin()
	var buffer unsafe.Pointer
	restore := func() {}
	if w.vtable.Lower == nil {
		pinned := &value
		pinner.Pin(pinned)
		buffer = unsafe.Pointer(pinned)
	} else {
		buffer = wit.Allocate(&pinner, uintptr(w.vtable.Size), uintptr(w.vtable.Align))
		restore = w.vtable.Lower(&pinner, value, buffer)
	}
	end, _ := async.Wait(w.vtable.Write(handle, buffer), handle)
	if end != async.Completed {
		restore()
	}
	return end == async.Completed
}

// Package runtime is the support of generated bindings: memory and handles.
//
// It has the interface of the public module of the same name, and is written by `toolwit build`. DO NOT EDIT!
package runtime

import (
	"runtime"
	"unsafe"
)

// Handle is a handle of a resource that can be moved once.
type Handle struct{ value int32 }

// MakeHandle wraps a handle.
func MakeHandle(value int32) *Handle {
	handle := &Handle{}
	handle.Set(value)
	return handle
}

// Use returns the handle.
func (h *Handle) Use() int32 {
	if h.value == 0 {
		panic("the resource was dropped or moved")
	}
	return h.value
}

// Take returns the handle, which is moved.
func (h *Handle) Take() int32 {
	value := h.Use()
	h.value = 0
	return value
}

// TakeOrNil returns the handle, which is moved, or 0.
func (h *Handle) TakeOrNil() int32 {
	value := h.value
	h.value = 0
	return value
}

// Set sets a handle that was moved.
func (h *Handle) Set(value int32) {
	if value == 0 || h.value != 0 {
		panic("the handle is zero, or the resource has one")
	}
	h.value = value
}

// Allocate returns memory that the pinner keeps.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	var pointer unsafe.Pointer
	switch align {
	case 1:
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint8, size)))
	case 2, 4, 8:
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))
	default:
		panic("the alignment is not supported")
	}
	pinner.Pin(pointer)
	return pointer
}

// The memory of the arguments of a call, until they have been converted.
var arguments runtime.Pinner

// Unpin releases the memory of the arguments.
func Unpin() { arguments.Unpin() }

// The host allocates before the package is initialized, when Go cannot allocate yet.
var isInitialized bool

func init() { isInitialized = true }

//go:linkname sbrk runtime.sbrk
func sbrk(size uintptr) unsafe.Pointer

//go:linkname acquirem runtime.acquirem
func acquirem() unsafe.Pointer

//go:linkname releasem runtime.releasem
func releasem(m unsafe.Pointer)

//go:wasmexport cabi_realloc
func cabiRealloc(old unsafe.Pointer, oldSize, align, size uintptr) unsafe.Pointer {
	if old != nil || oldSize != 0 {
		panic("memory cannot be resized")
	}
	if !isInitialized {
		start := sbrk(size + align - 1)
		return unsafe.Add(start, -uintptr(start)&(align-1))
	}
	// A collection cannot start here: other goroutines would run, which must not call the host now.
	m := acquirem()
	pointer := Allocate(&arguments, size, align)
	releasem(m)
	return pointer
}

// Package async runs the goroutines of async functions.
//
// It has the interface of the public module of the same name, and is written by `toolwit build`. DO NOT EDIT!
package async

import (
	"fmt"
	"runtime"
	"unsafe"
)

// The events that the host reports. Those of streams and futures have the numbers 2 to 5.
const (
	eventNone        = 0
	eventSubtask     = 1
	eventFutureWrite = 5
)

// What a call does next.
const (
	nextExit = 0
	nextWait = 2
)

// The states of a call of an imported function.
const (
	subtaskStarted  = 1
	subtaskReturned = 2
)

// The result of a read or write that has not ended yet.
const blocked = 0xFFFFFFFF

// The ends of a read or write.
const (
	Completed = 0
	Dropped   = 1
)

// A task is a call of an exported function.
type task struct {
	// The set of what its goroutines wait for, or 0.
	set uint32
	// The goroutines that wait, by handle.
	waiting map[uint32]chan uint32
	pinner  runtime.Pinner
}

// The task whose goroutines run.
var current *task

// Run calls the body of an exported function in a goroutine. It returns when all goroutines wait.
func Run(body func()) uint32 {
	current = &task{waiting: make(map[uint32]chan uint32)}
	current.pinner.Pin(current)
	go body()
	return current.advance()
}

// Callback continues a task after an event.
func Callback(event, handle, state uint32) uint32 {
	current = (*task)(contextGet())
	switch {
	case event == eventNone, event == eventSubtask && state <= subtaskStarted:
	case event == eventSubtask:
		current.wake(handle, state)
		subtaskDrop(handle)
	case event <= eventFutureWrite:
		current.wake(handle, state)
	default:
		panic(fmt.Sprintf("the event %d is not supported", event))
	}
	return current.advance()
}

// Runs goroutines until all of them wait, and returns what the task does next.
func (t *task) advance() uint32 {
	waitUntilIdle()
	contextSet(unsafe.Pointer(t))
	if len(t.waiting) > 0 {
		return nextWait | t.set<<4
	}
	if t.set != 0 {
		waitableSetDrop(t.set)
	}
	t.pinner.Unpin()
	return nextExit
}

// Lets the calling goroutine wait for an event of a handle, and returns its state.
func (t *task) wait(handle uint32) uint32 {
	if t.set == 0 {
		t.set = waitableSetNew()
	}
	waitableJoin(handle, t.set)
	event := make(chan uint32, 1)
	t.waiting[handle] = event
	return <-event
}

// Continues the goroutine that waits for a handle.
func (t *task) wake(handle, state uint32) {
	waitableJoin(handle, 0)
	event := t.waiting[handle]
	delete(t.waiting, handle)
	event <- state
}

// SubtaskWait waits until an imported function has returned.
func SubtaskWait(status uint32) {
	if handle := status >> 4; status&0xF < subtaskReturned {
		status = running().wait(handle)
	}
	if status&0xF != subtaskReturned {
		panic(fmt.Sprintf("the state %d of an imported function is not supported", status&0xF))
	}
}

// Wait waits until a read or write has ended, and returns how it ended and the number of items.
func Wait(code uint32, handle int32) (end, count uint32) {
	if code == blocked {
		code = running().wait(uint32(handle))
	}
	return code & 0xF, code >> 4
}

func running() *task {
	if current == nil {
		panic("only an async function can wait for the host: declare the exported function as `async func` in the WIT")
	}
	return current
}

// Parks the calling goroutine until all others wait. `toolwit build` adds it to the scheduler of Go.
//
//go:linkname waitUntilIdle runtime.waitUntilIdle
func waitUntilIdle()

//go:wasmimport $root [waitable-set-new]
func waitableSetNew() uint32

//go:wasmimport $root [waitable-set-drop]
func waitableSetDrop(set uint32)

//go:wasmimport $root [waitable-join]
func waitableJoin(handle, set uint32)

//go:wasmimport $root [context-get-0]
func contextGet() unsafe.Pointer

//go:wasmimport $root [context-set-0]
func contextSet(value unsafe.Pointer)

//go:wasmimport $root [subtask-drop]
func subtaskDrop(handle uint32)

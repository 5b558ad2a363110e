// `toolwit build` adds this file to the runtime of Go for plugins with async functions. It replaces `beforeIdle` of `lock_wasip1.go`.

package runtime

// The goroutine that waits until all others wait. The list of all goroutines keeps it alive.
var idleWaiter guintptr

// waitUntilIdle parks the calling goroutine until all others wait.
func waitUntilIdle() {
	idleWaiter.set(getg())
	gopark(nil, nil, waitReasonZero, traceBlockGeneric, 1)
}

// beforeIdle is called by the scheduler if no goroutine can run. If one sleeps, the module sleeps as well.
func beforeIdle(_, pollUntil int64) (*g, bool) {
	waiter := idleWaiter.ptr()
	if waiter == nil || pollUntil != 0 {
		return nil, false
	}
	idleWaiter = 0
	return waiter, false
}

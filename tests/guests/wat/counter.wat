;; Counts its calls in a global: a fresh instance always returns 1.
(component
  (core module $m
    (global $count (mut i32) (i32.const 0))
    (func (export "next") (result i32)
      (global.set $count (i32.add (global.get $count) (i32.const 1)))
      (global.get $count))
    (func (export "trap")
      (global.set $count (i32.const 7))
      unreachable))
  (core instance $i (instantiate $m))
  (func (export "next") (result u32) (canon lift (core func $i "next")))
  (func (export "trap") (canon lift (core func $i "trap"))))

;; Asynchronous functions of the component model: one returns at once, one yields endlessly.
(component
  (core module $m
    (import "" "return" (func $return (param i32)))
    (func (export "answer") (result i32) (call $return (i32.const 42)) (i32.const 0))
    (func (export "never") (result i32) (i32.const 1))
    (func (export "then") (param i32 i32 i32) (result i32) (i32.const 1)))
  (core func $return (canon task.return (result u32)))
  (core instance $i (instantiate $m (with "" (instance (export "return" (func $return))))))
  (func (export "answer") async (result u32) (canon lift (core func $i "answer") async (callback (core func $i "then"))))
  (func (export "never") async (result u32) (canon lift (core func $i "never") async (callback (core func $i "then")))))

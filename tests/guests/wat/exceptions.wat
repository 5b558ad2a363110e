;; Functions that throw exceptions: caught, not caught, without end, and kept without end.
(component
  (core module $m
    (tag $failure (param i32))
    (tag $link (param exnref))
    (func (export "fine") (result i32)
      (block $handler (result i32)
        (try_table (catch $failure $handler) (throw $failure (i32.const 42)))
        (unreachable)))
    (func (export "uncaught") (throw $failure (i32.const 1)))
    (func (export "throw-forever")
      (loop $again
        (drop (block $handler (result i32)
          (try_table (catch $failure $handler) (throw $failure (i32.const 1)))
          (unreachable)))
        (br $again)))
    ;; Each exception holds the previous one.
    (func (export "keep-forever")
      (local $last exnref)
      (loop $again
        (block $handler (result exnref exnref)
          (try_table (catch_ref $link $handler) (throw $link (local.get $last)))
          (unreachable))
        (local.set $last)
        (drop)
        (br $again))))
  (core instance $i (instantiate $m))
  (func (export "fine") (result u32) (canon lift (core func $i "fine")))
  (func (export "uncaught") (canon lift (core func $i "uncaught")))
  (func (export "throw-forever") (canon lift (core func $i "throw-forever")))
  (func (export "keep-forever") (canon lift (core func $i "keep-forever"))))

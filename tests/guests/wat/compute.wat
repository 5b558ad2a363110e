;; Functions that exceed a limit: time, stack, memory, tables.
(component
  (core module $m
    (memory $a (export "memory") 1)
    (memory $b 1)
    (table $t 1 funcref)

    (func (export "spin") (loop $again (br $again)))
    (func $recurse (export "recurse") (result i32)
      (i32.add (call $recurse) (i32.const 1)))
    (func $give_up (export "trap") unreachable)
    (func (export "fine") (result i32) (i32.const 42))
    (func (export "add") (param i64 i64) (result i64)
      (i64.add (local.get 0) (local.get 1)))
    ;; Allocates pages one by one until the allocation fails, and returns their number.
    (func (export "fill") (result i32)
      (local $got i32)
      (block $full
        (loop $again
          (br_if $full (i32.eq (memory.grow $a (i32.const 1)) (i32.const -1)))
          (local.set $got (i32.add (local.get $got) (i32.const 1)))
          (br $again)))
      (local.get $got))
    ;; Allocates pages for two memories in turn, and traps when an allocation fails, as most allocators do.
    (func (export "fill-both")
      (loop $again
        (if (i32.eq (memory.grow $a (i32.const 1)) (i32.const -1)) (then unreachable))
        (if (i32.eq (memory.grow $b (i32.const 1)) (i32.const -1)) (then unreachable))
        (br $again)))
    (func (export "fill-table")
      (loop $again
        (if (i32.eq (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)) (then unreachable))
        (br $again)))
    ;; Copies the same large block endlessly: each instruction takes long.
    (func (export "copy")
      (drop (memory.grow $a (i32.const 1023)))
      (loop $again
        (memory.copy (i32.const 0) (i32.const 1) (i32.const 0x3ffffff))
        (br $again))))
  (core instance $i (instantiate $m))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "recurse") (result u32) (canon lift (core func $i "recurse")))
  (func (export "fine") (result u32) (canon lift (core func $i "fine")))
  (func (export "trap") (canon lift (core func $i "trap")))
  (func (export "add") (param "a" s64) (param "b" s64) (result s64) (canon lift (core func $i "add")))
  (func (export "fill") (result u32) (canon lift (core func $i "fill")))
  (func (export "fill-both") (canon lift (core func $i "fill-both")))
  (func (export "fill-table") (canon lift (core func $i "fill-table")))
  (func (export "copy") (canon lift (core func $i "copy"))))

;; Functions that use the host excessively: they wait, flood, hoard handles and request huge amounts.
(component
  (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
  (alias export $error "error" (type $error-type))
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $p (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $p))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "output-stream" (type $out (sub resource)))
    (alias outer 1 $error-type (type $e))
    (export "error" (type $error (eq $e)))
    (type $stream-error' (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $stream-error')))
    (export "[method]output-stream.blocking-write-and-flush"
      (func (param "self" (borrow $out)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "output-stream" (type $output-stream))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $p))
    (export "pollable" (type $pollable (eq $p)))
    (export "now" (func (result u64)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
  (import "wasi:cli/exit@0.2.0" (instance $exit
    (export "exit" (func (param "status" (result))))))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $output-stream (type $o))
    (export "output-stream" (type $out (eq $o)))
    (export "get-stdout" (func (result (own $out))))))

  (core module $libc
    (memory (export "memory") 2)
    (global $top (mut i32) (i32.const 65536))
    ;; Allocates memory and never frees it; a large block has the same address each time.
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (local $pages i32)
      (local.set $pages (i32.add (i32.shr_u (local.get 3) (i32.const 16)) (i32.const 2)))
      (if (i32.gt_u (local.get $pages) (memory.size))
        (then (drop (memory.grow (i32.sub (local.get $pages) (memory.size))))))
      (global.get $top)))
  (core instance $libc (instantiate $libc))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core func $subscribe (canon lower (func $clock "subscribe-duration")))
  (core func $now (canon lower (func $clock "now")))
  (core func $random (canon lower (func $random "get-random-bytes")
    (memory (core memory $libc "memory")) (realloc (core func $libc "realloc"))))
  (core func $exit (canon lower (func $exit "exit")))
  (core func $get-stdout (canon lower (func $stdout "get-stdout")))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory (core memory $libc "memory"))))

  (core module $m
    (import "libc" "memory" (memory 1))
    (import "host" "block" (func $block (param i32)))
    (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
    (import "host" "now" (func $now (result i64)))
    (import "host" "random" (func $random (param i64 i32)))
    (import "host" "exit" (func $exit (param i32)))
    (import "host" "get-stdout" (func $get-stdout (result i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))

    (func (export "sleep") (param $seconds i64)
      (call $block (call $subscribe (i64.mul (local.get $seconds) (i64.const 1000000000)))))
    (func (export "fine") (result i32) (i32.const 42))
    (func (export "flood") (loop $again (drop (call $now)) (br $again)))
    (func (export "look-at-the-clock") (param $times i32)
      (loop $again
        (drop (call $now))
        (local.set $times (i32.sub (local.get $times) (i32.const 1)))
        (br_if $again (local.get $times))))
    (func (export "random") (param $len i64) (result i32)
      (call $random (local.get $len) (i32.const 8))
      (i32.load (i32.const 12)))
    (func (export "exit") (param $failed i32) (call $exit (local.get $failed)))
    ;; Writes 4 KiB `times` times, then gives how often.
    (func (export "print") (param $times i32)
      (local $out i32)
      (local.set $out (call $get-stdout))
      (memory.fill (i32.const 1024) (i32.const 120) (i32.const 4096))
      (loop $again
        (call $write (local.get $out) (i32.const 1024) (i32.const 4096) (i32.const 16))
        (local.set $times (i32.sub (local.get $times) (i32.const 1)))
        (br_if $again (local.get $times))))
    ;; Passes the full memory to one write.
    (func (export "print-much") (param $len i32)
      (drop (memory.grow (i32.add (i32.shr_u (local.get $len) (i32.const 16)) (i32.const 1))))
      (call $write (call $get-stdout) (i32.const 1024) (local.get $len) (i32.const 16)))
    ;; Opens and never closes.
    (func (export "hoard") (loop $again (drop (call $subscribe (i64.const 1000000000))) (br $again)))
    ;; Uses a handle that it never got.
    (func (export "forge") (call $block (i32.const 12345))))
  (core instance $i (instantiate $m
    (with "libc" (instance $libc))
    (with "host" (instance
      (export "block" (func $block))
      (export "subscribe" (func $subscribe))
      (export "now" (func $now))
      (export "random" (func $random))
      (export "exit" (func $exit))
      (export "get-stdout" (func $get-stdout))
      (export "write" (func $write))))))
  (func (export "sleep") (param "seconds" u64) (canon lift (core func $i "sleep")))
  (func (export "fine") (result u32) (canon lift (core func $i "fine")))
  (func (export "flood") (canon lift (core func $i "flood")))
  (func (export "look-at-the-clock") (param "times" u32) (canon lift (core func $i "look-at-the-clock")))
  (func (export "random") (param "bytes" u64) (result u32) (canon lift (core func $i "random")))
  (func (export "exit") (param "failed" bool) (canon lift (core func $i "exit")))
  (func (export "print") (param "times" u32) (canon lift (core func $i "print")))
  (func (export "print-much") (param "bytes" u32) (canon lift (core func $i "print-much")))
  (func (export "hoard") (canon lift (core func $i "hoard")))
  (func (export "forge") (canon lift (core func $i "forge"))))

//! Small handwritten components, which need no build.

/// Adds, halves with an error, greets with control characters, spins, traps and grows its memory.
pub(crate) const PLAIN: &str = r#"
(component
  (core module $m
    (memory (export "memory") 1)
    ;; The result of `greet`: pointer and length.
    (data (i32.const 16) "\20\00\00\00\0e\00\00\00")
    (data (i32.const 32) "\1b[31mhi\07 there")
    ;; The results of `halve`: a discriminant and a payload.
    (data (i32.const 64) "\01\00\00\00\00\00\00\00")
    (data (i32.const 80) "\00\00\00\00\00\00\00\00")
    (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "halve") (param i32) (result i32)
      (if (result i32) (i32.and (local.get 0) (i32.const 1))
        (then (i32.store (i32.const 68) (local.get 0)) (i32.const 64))
        (else (i32.store (i32.const 84) (i32.shr_u (local.get 0) (i32.const 1))) (i32.const 80))))
    (func (export "greet") (result i32) (i32.const 16))
    (func (export "spin") (loop (br 0)))
    (func (export "crash") unreachable)
    (func (export "grow") (if (i32.eq (memory.grow (i32.const 1000)) (i32.const -1)) (then unreachable))))
  (core instance $i (instantiate $m))
  (alias core export $i "memory" (core memory $memory))
  (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add")))
  (func (export "halve") (param "number" u32) (result (result u32 (error u32)))
    (canon lift (core func $i "halve") (memory $memory)))
  (func (export "greet") (result string) (canon lift (core func $i "greet") (memory $memory)))
  (func (export "spin") (canon lift (core func $i "spin")))
  (func (export "crash") (canon lift (core func $i "crash")))
  (func (export "grow") (canon lift (core func $i "grow"))))
"#;

/// The WIT of [`PLAIN`] with docs, for a file next to it.
pub(crate) const PLAIN_WIT: &str = "
package demo:plain;

world plain {
    /// Add two numbers. The sum must fit.
    ///
    /// It never wraps around.
    export add: func(a: u32, b: u32) -> u32;
    /// Halve an even number.
    export halve: func(number: u32) -> result<u32, u32>;
    export greet: func() -> string;
    export spin: func();
    export crash: func();
    export grow: func();
}
";

/// A counter that keeps its number between calls.
pub(crate) const COUNTER: &str = r#"
(component
  (type $counter' (resource (rep i32)))
  (core func $new (canon resource.new $counter'))
  (core module $m
    (import "host" "new" (func $new (param i32) (result i32)))
    (memory 1)
    ;; The representation of a counter is the address of its number.
    (global $free (mut i32) (i32.const 16))
    (func (export "new") (param i32) (result i32)
      (i32.store (global.get $free) (local.get 0))
      (global.set $free (i32.add (global.get $free) (i32.const 4)))
      (call $new (i32.sub (global.get $free) (i32.const 4))))
    (func (export "next") (param i32) (result i32)
      (i32.store (local.get 0) (i32.add (i32.load (local.get 0)) (i32.const 1)))
      (i32.load (local.get 0)))
    (func (export "break") (param i32) unreachable))
  (core instance $host (export "new" (func $new)))
  (core instance $i (instantiate $m (with "host" (instance $host))))
  (export $counter "counter" (type $counter'))
  (func (export "[constructor]counter") (param "start" u32) (result (own $counter))
    (canon lift (core func $i "new")))
  (func (export "[method]counter.next") (param "self" (borrow $counter)) (result u32)
    (canon lift (core func $i "next")))
  (func (export "[method]counter.break") (param "self" (borrow $counter))
    (canon lift (core func $i "break"))))
"#;

/// Another plugin with a tool `add`.
pub(crate) const RIVAL: &str = r#"
(component
  (core module $m (func (export "add") (param i32) (result i32) (local.get 0)))
  (core instance $i (instantiate $m))
  (func (export "add") (param "a" u32) (result u32) (canon lift (core func $i "add"))))
"#;

/// Imports an interface that no host provides.
pub(crate) const FOREIGN: &str = r#"
(component
  (import "acme:cloud/api@1.0.0" (instance $api (export "ask" (func (result u32)))))
  (core func $ask (canon lower (func $api "ask")))
  (core module $m (import "" "ask" (func $ask (result i32))) (func (export "ask") (result i32) (call $ask)))
  (core instance $i (instantiate $m (with "" (instance (export "ask" (func $ask))))))
  (func (export "ask") (result u32) (canon lift (core func $i "ask"))))
"#;

/// Returns the setting `greeting`, or `nothing` if it is unset. Also imports the network.
pub(crate) const SETTINGS: &str = r#"
(component
  (type $store (instance
    (type $failure (variant (case "upstream" string) (case "io" string)))
    (export "error" (type $error (eq $failure)))
    (export "get" (func (param "key" string) (result (result (option string) (error $error)))))))
  (import "wasi:config/store@0.2.0-draft" (instance $config (type $store)))
  (import "wasi:http/outgoing-handler@0.2.0" (instance))
  (core module $libc
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 1024))
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (global.get $free)
      (global.set $free (i32.add (global.get $free) (local.get 3)))))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (alias export $config "get" (func $get))
  (core func $lowered (canon lower (func $get) (memory $memory) (realloc $realloc)))
  (core module $m
    (import "libc" "memory" (memory 1))
    (import "config" "get" (func $get (param i32 i32 i32)))
    (data (i32.const 0) "greeting")
    (data (i32.const 32) "nothing")
    (func (export "greet") (result i32)
      (call $get (i32.const 0) (i32.const 8) (i32.const 64))
      (if (i32.load8_u (i32.const 68))
        (then
          (i32.store (i32.const 96) (i32.load (i32.const 72)))
          (i32.store (i32.const 100) (i32.load (i32.const 76))))
        (else
          (i32.store (i32.const 96) (i32.const 32))
          (i32.store (i32.const 100) (i32.const 7))))
      (i32.const 96)))
  (core instance $i (instantiate $m
    (with "libc" (instance $libc))
    (with "config" (instance (export "get" (func $lowered))))))
  (alias core export $i "greet" (core func $greet))
  (func (export "greet") (result string) (canon lift (core func $greet) (memory $memory))))
"#;

/// A function without a result, in a component that imports files.
pub(crate) const FILES: &str = r#"
(component
  (import "wasi:filesystem/preopens@0.2.0" (instance))
  (core module $m (func (export "look") (result i32) (i32.const 7)))
  (core instance $i (instantiate $m))
  (func (export "look") (result u32) (canon lift (core func $i "look"))))
"#;

/// Writes to a key-value store, with [`NOTES_GRANTS`] only: each call needs an approval.
pub(crate) const NOTES: &str = r#"
(component
  (import "wasi:keyvalue/store@0.2.0-draft2" (instance))
  (core module $m (func (export "f") (result i32) i32.const 1))
  (core instance $i (instantiate $m))
  (func (export "save") (result u32) (canon lift (core func $i "f"))))
"#;

/// The grants of [`NOTES`], as a package with the name `notes`.
pub(crate) const NOTES_GRANTS: &str =
    "version = 1\n[[grant]]\nplugin = \"notes\"\nany-version = true\nkeyvalue = { quota = \"1KiB\" }\n";

/// Works for a moment: `work` itself, and `start` in a background call, which it names in its `tool-result`.
#[cfg(unix)]
pub(crate) const SLOW: &str = r#"
(component
  (core module $m
    (memory (export "memory") 1)
    ;; The result of `start`: the text for the model, and in the end the background call.
    (data (i32.const 0) "\40\00\00\00\07\00\00\00")
    (data (i32.const 32) "\01\00\00\00\48\00\00\00\04\00\00\00\50\00\00\00\02\00\00\00")
    (data (i32.const 64) "started")
    (data (i32.const 72) "work")
    (data (i32.const 80) "{}")
    (func (export "start") (result i32) (i32.const 0))
    (func (export "work") (result i32) (local $left i32)
      (local.set $left (i32.const 200000000))
      (loop $again
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br_if $again (local.get $left)))
      (i32.const 7)))
  (core instance $i (instantiate $m))
  (alias core export $i "memory" (core memory $memory))
  (type $artifact' (record (field "kind" string) (field "value" string)))
  (export $artifact "artifact" (type $artifact'))
  (type $call' (record (field "tool" string) (field "arguments" string)))
  (export $call "background-call" (type $call'))
  (type $result' (record (field "for-llm" string) (field "for-user" (option string)) (field "silent" bool)
    (field "is-error" bool) (field "artifacts" (list $artifact)) (field "background" (option $call))))
  (export $result "tool-result" (type $result'))
  (func (export "start") (result $result) (canon lift (core func $i "start") (memory $memory)))
  (func (export "work") (result u32) (canon lift (core func $i "work"))))
"#;

/// Returns an interceptor that continues each call, and replaces its result with `text` of six bytes.
pub(crate) fn masking_interceptor(text: &str) -> Vec<u8> {
    assert_eq!(text.len(), 6);
    let module = format!(
        r#"(module
        (memory (export "memory") 1)
        ;; The review at 0: case `replace`, and the text of the outcome.
        (data (i32.const 0) "\01\00\00\00\40\00\00\00\06")
        (data (i32.const 64) "{text}")
        ;; The arguments are not read, so they may overwrite each other.
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
        (func (export "toolwit:plugin/interceptor@0.1.1#before") (param i32 i32 i32 i32 i32 i32) (result i32) i32.const 256)
        (func (export "toolwit:plugin/interceptor@0.1.1#after") (param i32) (result i32) i32.const 0))"#
    );
    let mut module = wat::parse_str(module).unwrap();
    let mut wit = wit_parser::Resolve::default();
    wit.push_str("plugin.wit", include_str!("../../../../wit/0.1.1/plugin.wit"))
        .unwrap();
    let world = "package test:mask; world mask { export toolwit:plugin/interceptor@0.1.1; }";
    let package = wit.push_str("mask.wit", world).unwrap();
    let world = wit.select_world(&[package], Some("mask")).unwrap();
    let encoding = wit_component::StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut module, &wit, world, encoding).unwrap();
    let mut encoder = wit_component::ComponentEncoder::default().module(&module).unwrap();
    encoder.encode().unwrap()
}

/// Imports the host of IronClaw and HTTP, and exports nothing.
pub(crate) const IRONCLAW: &str = r#"
(component
  (import "near:agent/host@0.3.0" (instance (export "now-millis" (func (result u64)))))
  (import "wasi:http/outgoing-handler@0.2.0" (instance)))
"#;

/// Draws a random number, with WASI 0.3.
pub(crate) const DRAW: &str = r#"(component
    (import "wasi:random/random@0.3.0" (instance $r (export "get-random-u64" (func (result u64)))))
    (core func $get (canon lower (func $r "get-random-u64")))
    (core module $m (import "" "get" (func $get (result i64))) (func (export "draw") (result i64) call $get))
    (core instance $i (instantiate $m (with "" (instance (export "get" (func $get))))))
    (func (export "draw") (result u64) (canon lift (core func $i "draw"))))"#;

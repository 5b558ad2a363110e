//! The interfaces of WASI that the guests of the tests import.

/// The interfaces of a command-line program.
pub(crate) const CLI: &str = "
package wasi:cli@0.2.0;
interface run { run: func() -> result; }
interface environment { get-environment: func() -> list<tuple<string, string>>; }
interface stdout { use wasi:io/streams@0.2.0.{output-stream}; get-stdout: func() -> output-stream; }
interface stderr { use wasi:io/streams@0.2.0.{output-stream}; get-stderr: func() -> output-stream; }
";

/// The output streams of `wasi:io`.
pub(crate) const IO: &str = "
package wasi:io@0.2.0;
interface error { resource error; }
interface streams {
    use error.{error};
    variant stream-error { last-operation-failed(error), closed }
    resource output-stream {
        blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
    }
}
";

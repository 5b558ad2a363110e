//! Symbols that Rust's standard library for `wasm32-wasip2` refers to and Debian's WASI C library does not have.
//!
//! That C library is of WASI preview 1, which has neither threads nor sockets that a program could open. Such calls
//! fail, and the standard library reports an ordinary error. `realpath` is implemented with the calls of preview 1.
//!
//! This file is compiled to one object, which is added to `libc.a`. The object is linked after `core`, so that it must
//! not refer to functions of `core` that are not inlined, such as those of panics. The code therefore uses pointers
//! in place of slices.
#![no_std]

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

const EINVAL: c_int = 28;
const ELOOP: c_int = 32;
const ENAMETOOLONG: c_int = 37;
const ENOENT: c_int = 44;
const ENOTSUP: c_int = 58;
const EAI_FAIL: c_int = -4;

const PATH_BYTES_MAX: usize = 4096;
const SYMLINKS_MAX: u32 = 40;

unsafe extern "C" {
    static mut errno: c_int;
    fn access(path: *const c_char, mode: c_int) -> c_int;
    fn getcwd(buffer: *mut c_char, size: usize) -> *mut c_char;
    fn malloc(size: usize) -> *mut c_void;
    fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize;
}

/// Defines functions of these signatures that do nothing but return a value.
macro_rules! return_value {
    ($value:expr => $($name:ident($($parameter:ty),*);)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($(_: $parameter),*) -> c_int {
                $value
            }
        )*
    };
}

type Pointer = *const c_void;

return_value! { 0 =>
    pthread_attr_destroy(Pointer);
    pthread_attr_init(Pointer);
    pthread_attr_setstacksize(Pointer, usize);
    pthread_detach(Pointer);
}

return_value! { ENOTSUP =>
    pthread_create(Pointer, Pointer, Pointer, Pointer);
    pthread_join(Pointer, Pointer);
}

return_value! { fail(ENOTSUP) =>
    bind(c_int, Pointer, u32);
    connect(c_int, Pointer, u32);
    getpeername(c_int, Pointer, Pointer);
    getsockname(c_int, Pointer, Pointer);
    listen(c_int, c_int);
    recvfrom(c_int, Pointer, usize, c_int, Pointer, Pointer);
    sendto(c_int, Pointer, usize, c_int, Pointer, u32);
    setsockopt(c_int, c_int, c_int, Pointer, u32);
    socket(c_int, c_int, c_int);
}

return_value! { EAI_FAIL =>
    getaddrinfo(Pointer, Pointer, Pointer, Pointer);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn freeaddrinfo(_: Pointer) {}

#[unsafe(no_mangle)]
unsafe extern "C" fn gai_strerror(_: c_int) -> *const c_char {
    c"names cannot be looked up in this build".as_ptr()
}

/// Resolves `.`, `..` and symbolic links. If `out` is null, the caller must free the returned text.
#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, out: *mut c_char) -> *mut c_char {
    unsafe {
        let mut resolved = Text::new();
        match resolve(path.cast(), &mut resolved) {
            Ok(()) => {}
            Err(code) => {
                fail(code);
                return ptr::null_mut();
            }
        }
        if access(resolved.start().cast(), 0) != 0 {
            return ptr::null_mut();
        }
        let out = if out.is_null() { malloc(resolved.length + 1).cast() } else { out };
        if !out.is_null() {
            ptr::copy_nonoverlapping(resolved.start().cast(), out, resolved.length + 1);
        }
        out
    }
}

unsafe fn resolve(path: *const u8, resolved: &mut Text) -> Result<(), c_int> {
    unsafe {
        if path.is_null() {
            return Err(EINVAL);
        }
        if *path == 0 {
            return Err(ENOENT);
        }
        let mut rest = Text::new();
        rest.append_c(path)?;
        if rest.at(0) != b'/' {
            let mut here = Text::new();
            if getcwd(here.start().cast(), PATH_BYTES_MAX).is_null() {
                return Err(errno);
            }
            resolved.append_c(here.start())?;
            resolved.drop_final_slash();
        }
        let mut links = 0;
        let mut from = 0;
        while from < rest.length {
            let mut to = from;
            while to < rest.length && rest.at(to) != b'/' {
                to += 1;
            }
            let name = to - from;
            if name == 2 && rest.at(from) == b'.' && rest.at(from + 1) == b'.' {
                resolved.drop_name();
            } else if name > 0 && !(name == 1 && rest.at(from) == b'.') {
                resolved.append(c"/".as_ptr().cast(), 1)?;
                resolved.append(rest.start().add(from), name)?;
                let mut target = Text::new();
                let bytes = readlink(resolved.start().cast(), target.start().cast(), PATH_BYTES_MAX - 1);
                if bytes > 0 {
                    links += 1;
                    if links > SYMLINKS_MAX {
                        return Err(ELOOP);
                    }
                    target.length = bytes as usize;
                    if target.at(0) == b'/' { resolved.clear() } else { resolved.drop_name() }
                    target.append(rest.start().add(to), rest.length - to)?;
                    rest = target;
                    from = 0;
                    continue;
                }
                // A parent outside of every preopened directory cannot be read. It is taken for a directory.
                if bytes < 0 && errno == ENOENT {
                    return Err(ENOENT);
                }
            }
            from = to + 1;
        }
        if resolved.length == 0 {
            resolved.append(c"/".as_ptr().cast(), 1)?;
        }
        Ok(())
    }
}

/// A path that is being built. It always ends with a zero byte.
struct Text {
    bytes: [u8; PATH_BYTES_MAX],
    length: usize,
}

impl Text {
    fn new() -> Self {
        Self { bytes: [0; PATH_BYTES_MAX], length: 0 }
    }

    fn start(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    fn at(&self, index: usize) -> u8 {
        unsafe { *self.bytes.as_ptr().add(index) }
    }

    unsafe fn append(&mut self, from: *const u8, length: usize) -> Result<(), c_int> {
        if length >= PATH_BYTES_MAX - self.length {
            return Err(ENAMETOOLONG);
        }
        unsafe {
            ptr::copy_nonoverlapping(from, self.start().add(self.length), length);
            self.length += length;
            *self.start().add(self.length) = 0;
        }
        Ok(())
    }

    unsafe fn append_c(&mut self, from: *const u8) -> Result<(), c_int> {
        let mut length = 0;
        while unsafe { *from.add(length) } != 0 {
            length += 1;
        }
        unsafe { self.append(from, length) }
    }

    fn clear(&mut self) {
        self.cut(0);
    }

    /// Removes the last `/name`.
    fn drop_name(&mut self) {
        let mut length = self.length;
        while length > 0 {
            length -= 1;
            if self.at(length) == b'/' {
                break;
            }
        }
        self.cut(length);
    }

    fn drop_final_slash(&mut self) {
        if self.length > 0 && self.at(self.length - 1) == b'/' {
            self.cut(self.length - 1);
        }
    }

    fn cut(&mut self, length: usize) {
        self.length = length;
        unsafe { *self.start().add(length) = 0 };
    }
}

fn fail(code: c_int) -> c_int {
    unsafe { errno = code };
    -1
}

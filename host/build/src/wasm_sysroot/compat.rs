//! Symbols that Rust's standard library for `wasm32-wasip2` refers to and that Debian's WASI C library lacks.
//!
//! Debian's C library implements WASI preview 1, in which a program can neither start threads nor open sockets. The
//! functions of this file that would do so return an error, which the standard library reports like any other error.
//! `realpath` is implemented with functions of the C library.
//!
//! This file is compiled to one object, which is added to `libc.a`. The object is linked after `core`, so it must not
//! refer to functions of `core` that are not inlined, such as the panic functions. The code therefore uses pointers
//! instead of slices.
#![no_std]

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};

// Error codes of WASI's C library.
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

/// Defines functions with these signatures that only return a value.
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

return_value! { set_errno(ENOTSUP) =>
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
    c"host names cannot be resolved in this build".as_ptr()
}

/// Resolves `.`, `..` and symbolic links in a path. If `out` is null, the caller must free the returned path.
#[unsafe(no_mangle)]
unsafe extern "C" fn realpath(path: *const c_char, out: *mut c_char) -> *mut c_char {
    unsafe {
        let mut resolved = PathBuffer::new();
        match resolve(path.cast(), &mut resolved) {
            Ok(()) => {}
            Err(error) => {
                set_errno(error);
                return ptr::null_mut();
            }
        }
        if access(resolved.as_mut_ptr().cast(), 0) != 0 {
            return ptr::null_mut();
        }
        let out = if out.is_null() { malloc(resolved.length + 1).cast() } else { out };
        if !out.is_null() {
            ptr::copy_nonoverlapping(resolved.as_mut_ptr().cast(), out, resolved.length + 1);
        }
        out
    }
}

/// Appends the components of `path` to `resolved`, without `.`, `..` and symbolic links. `resolved` must be empty.
unsafe fn resolve(path: *const u8, resolved: &mut PathBuffer) -> Result<(), c_int> {
    unsafe {
        if path.is_null() {
            return Err(EINVAL);
        }
        if *path == 0 {
            return Err(ENOENT);
        }
        let mut remaining = PathBuffer::new();
        remaining.append_c_str(path)?;
        if remaining.byte_at(0) != b'/' {
            let mut current_dir = PathBuffer::new();
            if getcwd(current_dir.as_mut_ptr().cast(), PATH_BYTES_MAX).is_null() {
                return Err(errno);
            }
            resolved.append_c_str(current_dir.as_mut_ptr())?;
            resolved.remove_final_slash();
        }
        let mut symlink_count = 0;
        let mut start = 0;
        while start < remaining.length {
            let mut end = start;
            while end < remaining.length && remaining.byte_at(end) != b'/' {
                end += 1;
            }
            let length = end - start;
            let is_dot = length == 1 && remaining.byte_at(start) == b'.';
            if length == 2 && remaining.byte_at(start) == b'.' && remaining.byte_at(start + 1) == b'.' {
                resolved.remove_last_component();
            } else if length > 0 && !is_dot {
                resolved.append(c"/".as_ptr().cast(), 1)?;
                resolved.append(remaining.as_mut_ptr().add(start), length)?;
                let mut target = PathBuffer::new();
                let target_length = readlink(resolved.as_mut_ptr().cast(), target.as_mut_ptr().cast(), PATH_BYTES_MAX - 1);
                if target_length > 0 {
                    symlink_count += 1;
                    if symlink_count > SYMLINKS_MAX {
                        return Err(ELOOP);
                    }
                    target.length = target_length as usize;
                    if target.byte_at(0) == b'/' { resolved.clear() } else { resolved.remove_last_component() }
                    target.append(remaining.as_mut_ptr().add(end), remaining.length - end)?;
                    remaining = target;
                    start = 0;
                    continue;
                }
                // After any other error, the path is treated as a file or directory. `readlink` fails for a path that
                // is not a symbolic link, and for a directory above the preopened directories.
                if target_length < 0 && errno == ENOENT {
                    return Err(ENOENT);
                }
            }
            start = end + 1;
        }
        if resolved.length == 0 {
            resolved.append(c"/".as_ptr().cast(), 1)?;
        }
        Ok(())
    }
}

/// A path that is being built. A zero byte follows its last byte.
struct PathBuffer {
    bytes: [u8; PATH_BYTES_MAX],
    length: usize,
}

impl PathBuffer {
    fn new() -> Self {
        Self { bytes: [0; PATH_BYTES_MAX], length: 0 }
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    fn byte_at(&self, index: usize) -> u8 {
        unsafe { *self.bytes.as_ptr().add(index) }
    }

    unsafe fn append(&mut self, from: *const u8, length: usize) -> Result<(), c_int> {
        if length >= PATH_BYTES_MAX - self.length {
            return Err(ENAMETOOLONG);
        }
        unsafe {
            ptr::copy_nonoverlapping(from, self.as_mut_ptr().add(self.length), length);
            self.length += length;
            *self.as_mut_ptr().add(self.length) = 0;
        }
        Ok(())
    }

    /// Appends a text that ends with a zero byte.
    unsafe fn append_c_str(&mut self, from: *const u8) -> Result<(), c_int> {
        let mut length = 0;
        while unsafe { *from.add(length) } != 0 {
            length += 1;
        }
        unsafe { self.append(from, length) }
    }

    fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes the last component and the slash before it.
    fn remove_last_component(&mut self) {
        let mut length = self.length;
        while length > 0 {
            length -= 1;
            if self.byte_at(length) == b'/' {
                break;
            }
        }
        self.truncate(length);
    }

    fn remove_final_slash(&mut self) {
        if self.length > 0 && self.byte_at(self.length - 1) == b'/' {
            self.truncate(self.length - 1);
        }
    }

    fn truncate(&mut self, length: usize) {
        self.length = length;
        unsafe { *self.as_mut_ptr().add(length) = 0 };
    }
}

/// Sets `errno`, and returns the value by which C functions report an error.
fn set_errno(error: c_int) -> c_int {
    unsafe { errno = error };
    -1
}

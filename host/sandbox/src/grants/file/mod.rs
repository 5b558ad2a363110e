//! The grants file on disk.

pub mod private_file;

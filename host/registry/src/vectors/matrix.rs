//! Reading the matrix of a safetensors file. Each row is the vector of one piece of the vocabulary.
//!
//! The file consists of the length of the header as a little-endian `u64`, the header as JSON, and the values of all tensors.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

use toolwit_core::limits::ByteCount;

/// The size of the header length at the beginning of the file, in bytes.
const LENGTH_BYTES: usize = 8;

/// Maximum size of the header, in bytes. A file with one tensor needs about a hundred bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Maximum number of components of a vector.
const COLUMNS_MAX: usize = 1_024;

/// The key of the header whose value is not a tensor.
const METADATA_KEY: &str = "__metadata__";

/// The number formats of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum NumberFormat {
    F16,
    BF16,
    F32,
}

/// The description of a tensor in the header.
#[derive(Debug, Deserialize)]
struct Tensor {
    dtype: NumberFormat,
    shape: Vec<usize>,
    /// The begin and end of the tensor's values, in bytes after the header.
    data_offsets: [usize; 2],
}

/// A matrix whose values stay in the bytes of its file.
#[derive(Debug)]
pub(super) struct Matrix {
    /// The content of the file.
    file_bytes: Vec<u8>,
    /// The position of the values in `file_bytes`.
    value_range: Range<usize>,
    format: NumberFormat,
    columns: usize,
}

impl NumberFormat {
    /// Returns the size of a number in bytes.
    fn size(self) -> usize {
        match self {
            Self::F16 | Self::BF16 => 2,
            Self::F32 => 4,
        }
    }
}

impl Matrix {
    /// Parses a file with one tensor of two dimensions.
    ///
    /// # Errors
    /// The reason why the bytes are not such a file, as a phrase that follows the name of the file.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        let (header, data) = split_header(&bytes)?;
        let tensor = only_tensor(header)?;
        let [rows, columns] = tensor.shape[..] else {
            return Err(format!("its tensor has {} dimensions instead of 2", tensor.shape.len()));
        };
        if rows == 0 || columns == 0 || columns > COLUMNS_MAX {
            return Err(format!(
                "it has {rows} vectors with {columns} components; at least 1 vector and 1 to \
                 {COLUMNS_MAX} components are supported"
            ));
        }
        let expected_bytes = rows
            .checked_mul(columns)
            .and_then(|values| values.checked_mul(tensor.dtype.size()));
        let [begin, end] = tensor.data_offsets;
        if begin != 0 || Some(end) != expected_bytes || end != data.len() {
            return Err("it is truncated, or its header does not describe its content".to_owned());
        }
        let matrix = Self {
            value_range: bytes.len() - data.len()..bytes.len(),
            format: tensor.dtype,
            columns,
            file_bytes: bytes,
        };
        if matrix.has_finite_values() {
            Ok(matrix)
        } else {
            Err("it has values that are not finite numbers".to_owned())
        }
    }

    /// Returns the number of vectors.
    pub(super) fn row_count(&self) -> usize {
        self.value_range.len() / self.row_bytes()
    }

    /// Returns the number of components of a vector.
    pub(super) fn column_count(&self) -> usize {
        self.columns
    }

    /// Returns the bytes of the file.
    pub(super) fn file_bytes(&self) -> &[u8] {
        &self.file_bytes
    }

    /// Adds the vector in a row to `sum`, which must have as many components. Does nothing if the row does not exist.
    pub(super) fn add_row(&self, row: usize, sum: &mut [f32]) {
        let values = &self.file_bytes[self.value_range.clone()];
        let Some(row) = values.chunks_exact(self.row_bytes()).nth(row) else {
            return;
        };
        match self.format {
            NumberFormat::F16 => add_values(row, sum, |bytes| f32_from_f16(u16::from_le_bytes(bytes))),
            NumberFormat::BF16 => add_values(row, sum, |bytes| {
                f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
            }),
            NumberFormat::F32 => add_values(row, sum, f32::from_le_bytes),
        }
    }

    /// Returns the size of a row in bytes.
    fn row_bytes(&self) -> usize {
        self.columns * self.format.size()
    }

    /// Returns whether all values are finite. A value is finite unless all bits of its exponent are set.
    fn has_finite_values(&self) -> bool {
        let values = &self.file_bytes[self.value_range.clone()];
        let are_finite = |exponent_mask: u16| {
            let size = self.format.size();
            let upper_bits = values
                .chunks_exact(size)
                .map(move |value| u16::from_le_bytes([value[size - 2], value[size - 1]]));
            // `fold` is faster than `all`: the compiler vectorises a loop only if it has no early exit.
            upper_bits
                .map(move |bits| bits & exponent_mask != exponent_mask)
                .fold(true, |all, is_finite| all & is_finite)
        };
        match self.format {
            NumberFormat::F16 => are_finite(0x7c00),
            NumberFormat::BF16 | NumberFormat::F32 => are_finite(0x7f80),
        }
    }
}

/// Splits a file into its header and the values of its tensors.
fn split_header(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let not_safetensors = || "it is not a safetensors file".to_owned();
    let (length, content) = bytes.split_first_chunk::<LENGTH_BYTES>().ok_or_else(not_safetensors)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| not_safetensors())?;
    if length > HEADER_BYTES_MAX {
        let length_max = ByteCount(HEADER_BYTES_MAX as u64);
        return Err(format!(
            "it is not a safetensors file, or its header is larger than {length_max}"
        ));
    }
    content
        .split_at_checked(length)
        .ok_or_else(|| "it is truncated".to_owned())
}

/// Returns the only tensor of a header.
fn only_tensor(header: &[u8]) -> Result<Tensor, String> {
    let mut entries: BTreeMap<String, Value> =
        serde_json::from_slice(header).map_err(|error| format!("its header is invalid: {error}"))?;
    entries.remove(METADATA_KEY);
    let count = entries.len();
    match entries.pop_first().filter(|_| count == 1) {
        Some((_, tensor)) => serde_json::from_value(tensor)
            .map_err(|error| format!("its tensor is not a matrix of word vectors: {error}")),
        None => Err(format!("it has {count} tensors; word vectors must be one tensor")),
    }
}

/// Adds the values of a row to a sum. `value` converts the bytes of one value.
fn add_values<const BYTES: usize>(row: &[u8], sum: &mut [f32], value: impl Fn([u8; BYTES]) -> f32) {
    let (values, _) = row.as_chunks::<BYTES>();
    for (component, bytes) in sum.iter_mut().zip(values) {
        *component += value(*bytes);
    }
}

/// Converts a finite number in the format F16.
fn f32_from_f16(bits: u16) -> f32 {
    /// 2 to the power of the difference between the exponent biases of F32 (127) and F16 (15).
    const REBIAS_FACTOR: f32 = f32::from_bits((127 + 127 - 15) << 23);
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * REBIAS_FACTOR;
    f32::from_bits(magnitude.to_bits() | u32::from(bits & 0x8000) << 16)
}

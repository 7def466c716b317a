//! One value as JSON, for lists, maps and groups that become text.

use coload_types::write_json_string;

use crate::value::{Scalar, write_scalar};

/// Appends a value as JSON: numbers with all of their digits, truths as such; texts, dates, times, UUIDs and bytes as strings, bytes in
/// hexadecimal digits; floats that are no numbers, which JSON has not, as the strings `NaN`, `Infinity`, `-Infinity`.
pub fn write_json(value: Scalar<'_>, out: &mut Vec<u8>) {
    match value {
        Scalar::Bool(_) | Scalar::Number(..) | Scalar::Long(..) => write_scalar(value, out),
        Scalar::Single(float) if float.is_finite() => write_scalar(value, out),
        Scalar::Double(float) if float.is_finite() => write_scalar(value, out),
        Scalar::Single(float) => write_no_number(f64::from(float), out),
        Scalar::Double(float) => write_no_number(float, out),
        Scalar::Text(text) => write_json_string(text, out),
        Scalar::Bytes(bytes) => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.push(b'"');
            out.extend(
                bytes
                    .iter()
                    .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]),
            );
            out.push(b'"');
        }
        other => {
            out.push(b'"');
            write_scalar(other, out);
            out.push(b'"');
        }
    }
}

fn write_no_number(float: f64, out: &mut Vec<u8>) {
    out.extend_from_slice(match (float.is_nan(), float > 0.0) {
        (true, _) => b"\"NaN\"",
        (false, true) => b"\"Infinity\"",
        (false, false) => b"\"-Infinity\"",
    });
}

//! The values of dictionaries, as those of a column.

use coload_arrow::Dictionary;
use coload_source::FieldError;
use coload_types::{DataType, Plain, Values};

use super::convert::{Converted, convert};

/// All values of a dictionary, as those of a column.
pub fn convert_dictionary(dictionary: &Dictionary, target: DataType) -> Converted {
    let mut all = Converted { plain: Plain::empty(target.physical()), bad: Vec::new() };
    for part in dictionary.parts() {
        let first = all.plain.len() as u32;
        let converted = convert(part, &dictionary.values, target);
        let bad = |(row, error): (u32, FieldError)| (first + row, error);
        all.bad.extend(converted.bad.into_iter().map(bad));
        append(&mut all.plain, converted.plain);
    }
    all
}

/// Appends a column to another.
pub fn append(to: &mut Plain, from: Plain) {
    if to.is_empty() {
        *to = from;
        return;
    }
    let before = to.len();
    if to.nulls.is_some() || from.nulls.is_some() {
        let nulls = to.nulls.get_or_insert_with(|| coload_types::Bitmap::zeros(before));
        (0..from.len()).for_each(|row| nulls.push(from.is_null(row)));
    }
    match (&mut to.values, from.values) {
        (Values::Int(to), Values::Int(from)) => to.extend(from),
        (Values::Wide(to), Values::Wide(from)) => to.extend(from),
        (Values::Bytes(to), Values::Bytes(from)) => from.iter().for_each(|s| to.push(s)),
        (to, from) => (0..from.len()).for_each(|row| to.push(&from.get(row))),
    }
}

//! Numbers of a window on their way into a fragment.

use coload_types::Value;
use coload_types::parse_value::{Doubtful, ManyFields, parse_int_in, parse_wide_in};

use super::{ColumnParser, Fields};
use crate::column_rules::is_doubtful;
use crate::field::FieldError;

/// Fields whose places are found at once.
const SPANS: usize = 512;

impl ColumnParser {
    pub(super) fn parse_ints(
        &mut self,
        fields: &Fields<'_>,
        tell: &mut impl FnMut(usize, FieldError),
    ) {
        let data_type = self.rules.data_type;
        let doubts = self.rules.has_doubts();
        let rewrites = self.rules.reads_otherwise();
        self.ints.reserve(fields.len());
        let doubtful = if doubts { Doubtful::LeftOut } else { Doubtful::Read };
        if let Some(many) = ManyFields::new(data_type, doubtful).filter(|_| !rewrites) {
            self.parse_ints_by_many(fields, many, tell);
            return;
        }
        let text = fields.rows.text;
        let empty_is_null = self.rules.nullable && self.rules.fields.empty_is_null();
        fields.for_each(|row, start, end| {
            let (at, field) = (self.ints.len(), &text[start..end]);
            if start == end && empty_is_null {
                self.nulls.push(at as u32);
                self.ints.push(0);
                return;
            }
            let value = match parse_int_in(text, start, end, data_type) {
                Ok(value) if !(rewrites || doubts && is_doubtful(field, data_type, value)) => value,
                _ => self.read_int(at, row, field, tell),
            };
            self.ints.push(value);
        });
    }

    /// As [`Self::parse_ints`], plain fields many at a time, and none of those that are NULL as they are empty.
    fn parse_ints_by_many(
        &mut self,
        fields: &Fields<'_>,
        many: ManyFields,
        tell: &mut impl FnMut(usize, FieldError),
    ) {
        let text = fields.rows.text;
        let data_type = self.rules.data_type;
        let doubts = self.rules.has_doubts();
        let empty_is_null = self.rules.nullable && self.rules.fields.empty_is_null();
        let (mut starts, mut ends, mut numbers) = ([0; SPANS], [0; SPANS], [0; SPANS]);
        let (mut some, mut missed) = (Vec::new(), Vec::new());
        for first in (0..fields.len()).step_by(SPANS) {
            let count = SPANS.min(fields.len() - first);
            let (before, nulls_before) = (self.ints.len(), self.nulls.len());
            fields.find_spans(first, &mut starts[..count], &mut ends[..count]);
            let held = match empty_is_null {
                true => leave_out_empty(&mut starts[..count], &mut ends[..count], &mut numbers),
                false => count,
            };
            let (starts, ends) = (&starts[..held], &ends[..held]);
            missed.clear();
            if held == count {
                many.read(text, starts, ends, &mut self.ints, &mut missed);
            } else {
                some.clear();
                many.read(text, starts, ends, &mut some, &mut missed);
                self.ints.resize(before + count, 0);
                let numbers = &numbers[..held];
                for (number, value) in numbers.iter().zip(&some) {
                    self.ints[before + usize::from(*number)] = *value;
                }
                let mut next = 0;
                for number in numbers.iter().copied().chain([count as u16]) {
                    let empty = next..usize::from(number);
                    self.nulls.extend(empty.map(|i| (before + i) as u32));
                    next = usize::from(number) + 1;
                }
            }
            for i in &missed {
                let (start, end) = (starts[*i as usize] as usize, ends[*i as usize] as usize);
                let number = if held == count { *i as usize } else { numbers[*i as usize].into() };
                let field = &text[start..end];
                self.ints[before + number] = match parse_int_in(text, start, end, data_type) {
                    Ok(value) if !(doubts && is_doubtful(field, data_type, value)) => value,
                    _ => self.read_int(before + number, fields.row(first + number), field, tell),
                };
            }
            if held < count && !missed.is_empty() {
                self.nulls[nulls_before..].sort_unstable();
            }
        }
    }

    /// Reads what is not plain: value number `at`, of record `row`; 0 where it is NULL or bad.
    #[inline(never)]
    fn read_int(
        &mut self,
        at: usize,
        row: usize,
        field: &[u8],
        tell: &mut impl FnMut(usize, FieldError),
    ) -> i64 {
        match self.rules.value(field) {
            Ok(Some(Value::Int(value))) => return value,
            Ok(_) => self.nulls.push(at as u32),
            Err(error) => tell(row, error),
        }
        0
    }

    pub(super) fn parse_wides(
        &mut self,
        fields: &Fields<'_>,
        tell: &mut impl FnMut(usize, FieldError),
    ) {
        let text = fields.rows.text;
        let data_type = self.rules.data_type;
        let doubts = self.rules.has_doubts();
        let rewrites = self.rules.reads_otherwise();
        let empty_is_null = self.rules.nullable && self.rules.fields.empty_is_null();
        self.wides.reserve(fields.len());
        fields.for_each(|row, start, end| {
            if start == end && empty_is_null {
                self.nulls.push(self.wides.len() as u32);
                self.wides.push(0);
                return;
            }
            let value = match parse_wide_in(text, start, end, data_type) {
                Ok(value)
                    if !(rewrites || doubts && is_doubtful(&text[start..end], data_type, 0)) =>
                {
                    value
                }
                _ => match self.rules.value(&text[start..end]) {
                    Ok(Some(Value::Wide(value))) => value,
                    Ok(_) => {
                        self.nulls.push(self.wides.len() as u32);
                        0
                    }
                    Err(error) => {
                        tell(row, error);
                        0
                    }
                },
            };
            self.wides.push(value);
        });
    }
}

/// Moves the fields that are not empty to the front; how many they are, and their numbers.
fn leave_out_empty(starts: &mut [u32], ends: &mut [u32], numbers: &mut [u16; SPANS]) -> usize {
    let mut held = 0;
    for i in 0..starts.len() {
        // Without a branch: some columns are empty by turns.
        let (start, end) = (starts[i], ends[i]);
        (starts[held], ends[held], numbers[held]) = (start, end, i as u16);
        held += usize::from(start != end);
    }
    held
}

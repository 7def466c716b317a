//! Numbers of a window on their way into a fragment.

use coload_types::parse_value::{Doubtful, ManyFields, parse_int_in, parse_wide_in};
use coload_types::{DataType, Value};

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
        let text = fields.rows.text;
        let doubts = self.rules.has_doubts();
        let rewrites = self.rules.reads_otherwise();
        let empty_is_null = self.rules.nullable && self.rules.fields.empty_is_null();
        self.ints.reserve(fields.len());
        let doubtful = if doubts { Doubtful::LeftOut } else { Doubtful::Read };
        let eight = ManyFields::new(self.rules.data_type, doubtful);
        if let Some(eight) = eight.filter(|_| !rewrites) {
            self.parse_ints_by_eight(fields, eight, tell);
            return;
        }
        // The type is matched outside the loop, so that each loop holds one parser.
        macro_rules! each {
            ($data_type:expr) => {{
                let data_type = $data_type;
                fields.for_each(|row, start, end| {
                    if start == end && empty_is_null {
                        self.nulls.push(self.ints.len() as u32);
                        self.ints.push(0);
                        return;
                    }
                    let value = match parse_int_in(text, start, end, data_type) {
                        Ok(value)
                            if !(rewrites
                                || doubts && is_doubtful(&text[start..end], data_type, value)) =>
                        {
                            value
                        }
                        _ => self.read_int(self.ints.len(), row, &text[start..end], tell),
                    };
                    self.ints.push(value);
                })
            }};
        }
        match self.rules.data_type {
            DataType::BigInt => each!(DataType::BigInt),
            DataType::Integer => each!(DataType::Integer),
            DataType::Decimal { precision, scale } => each!(DataType::Decimal { precision, scale }),
            DataType::Timestamp => each!(DataType::Timestamp),
            DataType::Double => each!(DataType::Double),
            other => each!(other),
        }
    }

    /// As [`Self::parse_ints`], plain numbers eight at a time.
    fn parse_ints_by_eight(
        &mut self,
        fields: &Fields<'_>,
        eight: ManyFields,
        tell: &mut impl FnMut(usize, FieldError),
    ) {
        let text = fields.rows.text;
        let data_type = self.rules.data_type;
        let doubts = self.rules.has_doubts();
        let empty_is_null = self.rules.nullable && self.rules.fields.empty_is_null();
        let (mut starts, mut ends) = ([0; SPANS], [0; SPANS]);
        let mut missed = Vec::new();
        for first in (0..fields.len()).step_by(SPANS) {
            let count = SPANS.min(fields.len() - first);
            let (starts, ends) = (&mut starts[..count], &mut ends[..count]);
            fields.find_spans(first, starts, ends);
            let before = self.ints.len();
            missed.clear();
            eight.read(text, starts, ends, &mut self.ints, &mut missed);
            for i in &missed {
                let i = *i as usize;
                let (start, end) = (starts[i] as usize, ends[i] as usize);
                if start == end && empty_is_null {
                    self.nulls.push((before + i) as u32);
                    continue;
                }
                self.ints[before + i] = match parse_int_in(text, start, end, data_type) {
                    Ok(value) if !(doubts && is_doubtful(&text[start..end], data_type, value)) => {
                        value
                    }
                    _ => {
                        let row = fields.row(first + i);
                        self.read_int(before + i, row, &text[start..end], tell)
                    }
                };
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

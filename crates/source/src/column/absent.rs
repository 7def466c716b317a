//! Rows of inputs that lack the column.

use coload_page::SOURCE_PADDING;
use coload_types::{Physical, Value};

use super::{ColumnParser, ColumnPlan, count_text, keep_text};
use crate::lexicon::TooManyValues;

impl ColumnParser {
    /// Says which field of the next records the column is.
    pub(crate) fn set_field(&mut self, field: Option<usize>) {
        self.rules.field = field;
    }

    /// Appends rows whose input lacks the column.
    ///
    /// # Errors
    /// `TooManyValues` when the plan was codes and there are too many; nothing is kept then.
    pub(crate) fn push_absent(&mut self, rows: usize) -> Result<(), TooManyValues> {
        if rows == 0 {
            return Ok(());
        }
        let value = self.rules.absent.clone();
        if matches!(self.plan, ColumnPlan::Codes) {
            let code = self.lexicon.code_of_absent(value)?;
            self.codes.push_run(code, rows);
            self.rows += rows;
            return Ok(());
        }
        let repeats = self.reads_changes();
        // A value that is repeated is kept once.
        let count = if repeats { 1 } else { rows };
        if value.is_none() {
            let first = self.mark().values as u32;
            self.nulls.extend(first..first + count as u32);
        }
        match (self.rules.data_type.physical(), value) {
            (Physical::Int, value) => {
                let value = if let Some(Value::Int(value)) = value { value } else { 0 };
                self.ints.extend(std::iter::repeat_n(value, count));
            }
            (Physical::Wide, value) => {
                let value = if let Some(Value::Wide(value)) = value { value } else { 0 };
                self.wides.extend(std::iter::repeat_n(value, count));
            }
            (Physical::Bytes, Some(Value::Bytes(text))) => self.push_text(&text, count),
            (Physical::Bytes, _) => self.push_text(&[], count),
        }
        if repeats {
            self.starts.push(self.rows as u32);
        }
        self.rows += rows;
        Ok(())
    }

    fn push_text(&mut self, text: &[u8], count: usize) {
        let encoder = match &self.plan {
            ColumnPlan::Text { encoder, .. } => Some(std::sync::Arc::clone(encoder)),
            _ => None,
        };
        let mut source = text.to_vec();
        source.extend([0; SOURCE_PADDING]);
        let scratch = &mut self.scratch;
        scratch.starts.clear();
        scratch.starts.resize(count, 0);
        scratch.lengths.clear();
        scratch.lengths.resize(count, text.len() as u32);
        keep_text(&source, scratch, encoder.as_deref(), &mut self.text, &mut self.strings);
        count_text(self.distinct.as_deref(), &source, scratch, encoder.as_deref());
    }
}

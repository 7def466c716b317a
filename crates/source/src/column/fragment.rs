//! What a column of a fragment becomes when its records are read.

use coload_page::{Page, encode_int, encode_symbols, encode_wide};
use coload_transform::FragmentColumn;
use coload_types::{Bitmap, Physical, Plain, Result, Values};

use super::{ColumnParser, ColumnPlan, Mark};
use crate::repeats::Repeats;

impl ColumnParser {
    /// Ends the fragment and gives its column.
    ///
    /// # Errors
    /// `Limit` when the text is over 4 GiB.
    pub fn finish(&mut self, dictionary: u32) -> Result<FragmentColumn> {
        self.count_values();
        let column = match self.plan {
            ColumnPlan::Codes => {
                let distinct = self.lexicon.dictionary().values.len();
                let codes = self.codes.finish(distinct);
                FragmentColumn::Codes { codes, dictionary, nulls: self.lexicon.has_nulls() }
            }
            _ => self.fragment_column()?,
        };
        self.truncate(Mark::default());
        if let Some(planned) = self.planned_next.take() {
            self.plan = planned;
        }
        Ok(column)
    }

    /// What the fragment has so far, of a column without codes.
    pub(super) fn fragment_column(&mut self) -> Result<FragmentColumn> {
        if self.reads_changes() {
            Ok(FragmentColumn::Page(self.repeats_page()?))
        } else {
            self.plain_column()
        }
    }

    /// Counts what the fragment keeps; encoded text was counted as it came.
    fn count_values(&self) {
        let Some(distinct) = &self.distinct else { return };
        match (&self.plan, self.rules.data_type.physical()) {
            (ColumnPlan::Codes | ColumnPlan::Text { .. }, _) => {}
            (_, Physical::Int) => distinct.add_ints(&self.ints),
            (_, Physical::Wide) => distinct.add_wides(&self.wides),
            (_, Physical::Bytes) => distinct.add_strings(&self.strings),
        }
    }

    fn repeats_page(&self) -> Result<Page> {
        let (rows, nulls) = (self.rows as u32, self.nulls.as_slice());
        let repeats = Repeats { starts: &self.starts, rows, nulls };
        match (&self.plan, self.rules.data_type.physical()) {
            (ColumnPlan::Text { encoder, .. }, _) => repeats.text_page(&self.text, encoder),
            (_, Physical::Int) => Ok(repeats.int_page(&self.ints)),
            _ => Ok(repeats.wide_page(&self.wides)),
        }
    }

    fn plain_column(&mut self) -> Result<FragmentColumn> {
        let bitmap = (!self.nulls.is_empty()).then(|| {
            let mut bitmap = Bitmap::zeros(self.rows);
            for row in &self.nulls {
                bitmap.set(*row as usize);
            }
            bitmap
        });
        Ok(match (&self.plan, self.rules.data_type.physical()) {
            (ColumnPlan::Text { encoder, .. }, _) => {
                FragmentColumn::Page(encode_symbols(&self.text, bitmap.as_ref(), encoder)?)
            }
            (ColumnPlan::Codes | ColumnPlan::PlainText, _) => FragmentColumn::Plain(Plain {
                values: Values::Bytes(std::mem::take(&mut self.strings)),
                nulls: bitmap,
            }),
            (ColumnPlan::PlainNumbers, Physical::Int) => FragmentColumn::Plain(Plain {
                values: Values::Int(std::mem::take(&mut self.ints)),
                nulls: bitmap,
            }),
            (ColumnPlan::PlainNumbers, _) => FragmentColumn::Plain(Plain {
                values: Values::Wide(std::mem::take(&mut self.wides)),
                nulls: bitmap,
            }),
            (ColumnPlan::Numbers { .. }, Physical::Int) => {
                FragmentColumn::Page(encode_int(&self.ints, bitmap.as_ref()))
            }
            (ColumnPlan::Numbers { .. }, _) => {
                FragmentColumn::Page(encode_wide(&self.wides, bitmap.as_ref()))
            }
        })
    }
}

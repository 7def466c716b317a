//! Pages of values that were read once for each run of equal fields.

use coload_page::bitpack::width_of;
use coload_page::runs::RowRuns;
use coload_page::{EncodedStrings, Page, SymbolEncoder, encode_int, encode_text, encode_wide};
use coload_types::{Bitmap, Result};

/// Values, the first row of each, and which of them are NULL.
pub(crate) struct Repeats<'a> {
    pub(crate) starts: &'a [u32],
    pub(crate) rows: u32,
    /// Indexes of values, in order.
    pub(crate) nulls: &'a [u32],
}

/// Values in the order of rows, each for a run or for one row.
struct Spread<T> {
    runs: Option<RowRuns>,
    values: Vec<T>,
    nulls: Option<Bitmap>,
    null_rows: u32,
}

impl<T> Spread<T> {
    fn page(&self, values: Page) -> Page {
        match &self.runs {
            Some(runs) => runs.store(&values, self.null_rows),
            None => values,
        }
    }
}

impl Repeats<'_> {
    pub(crate) fn int_page(&self, ints: &[i64]) -> Page {
        let (min, max) = ints.iter().fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        let bits = width_of(max.wrapping_sub(min) as u64);
        let spread = self.spread(ints, usize::from(bits), |a, b| a == b);
        spread.page(encode_int(&spread.values, spread.nulls.as_ref()))
    }

    pub(crate) fn wide_page(&self, wides: &[i128]) -> Page {
        let spread = self.spread(wides, 128, |a, b| a == b);
        spread.page(encode_wide(&spread.values, spread.nulls.as_ref()))
    }

    pub(crate) fn text_page(&self, text: &EncodedStrings, encoder: &SymbolEncoder) -> Result<Page> {
        let (text, symbols) = text.settle(encoder)?;
        let mut end = 0;
        let place = |length: &u32| {
            end += *length as usize;
            (end - *length as usize, end)
        };
        let places: Vec<(usize, usize)> = text.lengths.iter().map(place).collect();
        let bits = text.bytes.len() * 8 / places.len().max(1) + 6;
        let same =
            |a: (usize, usize), b: (usize, usize)| text.bytes[a.0..a.1] == text.bytes[b.0..b.1];
        let spread = self.spread(&places, bits, same);
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for (start, end) in &spread.values {
            bytes.extend_from_slice(&text.bytes[*start..*end]);
            lengths.push((end - start) as u32);
        }
        Ok(spread.page(encode_text(&bytes, &lengths, spread.nulls.as_ref(), symbols)?))
    }

    /// Joins runs of one value, and spreads them over their rows if storing runs does not pay.
    fn spread<T: Copy>(&self, values: &[T], bits: usize, same: impl Fn(T, T) -> bool) -> Spread<T> {
        assert_eq!(values.len(), self.starts.len());
        let mut is_null = vec![false; values.len()];
        self.nulls.iter().for_each(|n| is_null[*n as usize] = true);
        let ends = self.starts.iter().skip(1).chain([&self.rows]);
        let (mut runs, mut lengths): (Vec<(T, bool)>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut null_rows = 0;
        for (i, (start, end)) in self.starts.iter().zip(ends).enumerate() {
            let (value, null) = (values[i], is_null[i]);
            null_rows += if null { end - start } else { 0 };
            match (runs.last(), lengths.last_mut()) {
                // Texts may differ where values do not, and blocks start anew.
                (Some((v, n)), Some(length)) if *n == null && (null || same(*v, value)) => {
                    *length += end - start;
                }
                _ => {
                    runs.push((value, null));
                    lengths.push(end - start);
                }
            }
        }
        let found = RowRuns::of_lengths(lengths.clone(), bits);
        let of_rows: Vec<(T, bool)> = match &found {
            Some(found) => found.values(&runs).into_owned(),
            None => {
                let runs = runs.iter().zip(&lengths);
                runs.flat_map(|(r, l)| std::iter::repeat_n(*r, *l as usize)).collect()
            }
        };
        let nulls = (null_rows > 0).then(|| {
            let mut nulls = Bitmap::zeros(0);
            of_rows.iter().for_each(|(_, null)| nulls.push(*null));
            nulls
        });
        let values = of_rows.into_iter().map(|(value, _)| value).collect();
        Spread { runs: found, values, nulls, null_rows }
    }
}

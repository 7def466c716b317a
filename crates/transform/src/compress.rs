//! The compress step: the fragments of a partition get one dictionary per column and packed codes.
//!
//! ```text
//!   fragment 0  codes into temporary dictionary A  \
//!   fragment 1  codes into temporary dictionary B   >  one sorted dictionary, a page of packed
//!   fragment 2  codes into temporary dictionary A  /   codes for each fragment
//! ```
//!
//! A column whose dictionary would be larger than what it saves becomes plain pages instead, unless
//! the policy forces dictionaries. The choice depends on the values of the partition only, never on
//! which worker saw which fragment.
//!
//! Cost: a load, a table look-up and a store for each row, and the packing.
//!
//! Source: seed 000, section 4.1 (compression step).

use std::borrow::Cow;

use coload_page::bitpack::width_of;
use coload_page::runs::{RowRuns, expand_runs};
use coload_page::{
    Page, SymbolDecoder, SymbolEncoder, encode_codes_u16, encode_codes_u32, encode_plain,
    encode_symbols, shrink_page,
};
use coload_types::{Bitmap, Dictionary, Error, Physical, Plain, Result, Strings, Values};

use crate::sort::push_from;
use crate::{
    DictionaryLimit, FragmentColumn, NULL_CODE, TemporaryDictionary, merge_dictionaries,
    sort_column, sort_dictionary,
};

/// When a column gets a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DictionaryPolicy {
    /// When it takes less space than the values it replaces, or has few values.
    #[default]
    Auto,
    /// Always: the storage of seed 000.
    Always,
    /// Where codes are there already, and pages as a scan wants them that is the only one: without runs, in no other codec.
    ForScan,
}

/// Up to this many values a dictionary is always kept: its codes make filters and groups fast.
const DICTIONARY_ALWAYS_MAX: usize = 256;

/// One column of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionColumn {
    /// The sorted values that `Codes` pages point into.
    pub dictionary: Option<Dictionary>,
    /// Symbol tables of `Text` pages, 1-based there.
    pub symbols: Vec<Vec<u8>>,
    /// A page for each fragment.
    pub pages: Vec<Page>,
}

/// The sort step of a partition's column whose fragments all hold codes (`None` otherwise): its
/// temporary dictionaries, sorted and joined.
///
/// # Errors
/// `Limit` when the dictionary has too many values or is over 4 GiB.
pub fn sort_temporaries(
    columns: &[FragmentColumn],
    temporaries: &[TemporaryDictionary],
    physical: Physical,
    limit: DictionaryLimit,
) -> Result<Option<JoinedDictionary>> {
    if columns.iter().all(|c| matches!(c, FragmentColumn::Codes { .. })) {
        // Over the limit of one worker's dictionary the column is plain, whoever saw what.
        let joined = join_temporaries(columns, temporaries, physical)?;
        Ok(limit.holds_all(joined.dictionary.values()).then_some(joined))
    } else {
        Ok(None)
    }
}

/// The compress step of one column of a partition.
///
/// `columns` are the fragments' columns in order, `temporaries` the dictionaries that their codes
/// point into, `sorted` what [`sort_temporaries`] made of these, `encoder` the symbols that the
/// `Text` pages were made with, if any.
///
/// # Errors
/// `Limit` when a dictionary has too many values or a text page is over 4 GiB.
pub fn compress_column(
    columns: Vec<FragmentColumn>,
    temporaries: &[TemporaryDictionary],
    sorted: Option<JoinedDictionary>,
    encoder: Option<&SymbolEncoder>,
    physical: Physical,
    policy: DictionaryPolicy,
) -> Result<PartitionColumn> {
    let rows = columns.iter().map(|c| c.rows() as u64).sum();
    match (sorted, policy) {
        (Some(joined), DictionaryPolicy::Always) => {
            return Ok(pack_joined(&columns, joined, Runs::Found));
        }
        (Some(joined), DictionaryPolicy::Auto) if dictionary_pays(&joined.dictionary, rows) => {
            return Ok(pack_joined(&columns, joined, Runs::Found));
        }
        (Some(joined), DictionaryPolicy::ForScan) => {
            return Ok(pack_joined(&columns, joined, Runs::NotWanted));
        }
        (None, DictionaryPolicy::ForScan) => {
            return compress_plain(columns, temporaries, encoder, physical);
        }
        (None, DictionaryPolicy::Always) => {
            let mut column = compress_sorted(columns, temporaries, encoder, physical)?;
            shrink_pages(&mut column)?;
            return Ok(column);
        }
        _ => {}
    }
    let mut column = compress_plain(columns, temporaries, encoder, physical)?;
    shrink_pages(&mut column)?;
    Ok(column)
}

fn shrink_pages(column: &mut PartitionColumn) -> Result<()> {
    let pages = std::mem::take(&mut column.pages);
    column.pages = pages.into_iter().map(shrink_page).collect::<Result<_>>()?;
    Ok(())
}

/// The partition's dictionary, and for each temporary one the code of each provisional code, with
/// the code of NULL at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedDictionary {
    dictionary: Dictionary,
    tables: Vec<Vec<u16>>,
}

impl JoinedDictionary {
    /// The partition's dictionary, sorted and without NULL.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }
}

fn join_temporaries(
    columns: &[FragmentColumn],
    temporaries: &[TemporaryDictionary],
    physical: Physical,
) -> Result<JoinedDictionary> {
    let sorted = temporaries
        .iter()
        .enumerate()
        .map(|(i, t)| {
            let used = t.stale.then(|| used_codes(columns, i as u32, t.values.len()));
            sort_dictionary(t, used.as_deref())
        })
        .collect::<Result<Vec<_>>>()?;
    let inputs: Vec<&Dictionary> = sorted.iter().map(|s| &s.dictionary).collect();
    let (dictionary, translations) = merge_dictionaries(&inputs, physical)?;
    let null = dictionary.len() as u16;
    let tables = sorted
        .iter()
        .zip(&translations)
        .map(|(s, t)| {
            let code = |p: &u32| t.get(*p as usize).map_or(0, |c| c.0 as u16);
            s.positions.iter().map(code).chain([null]).collect()
        })
        .collect();
    Ok(JoinedDictionary { dictionary, tables })
}

pub(crate) fn used_codes(columns: &[FragmentColumn], of: u32, count: usize) -> Vec<bool> {
    let mut used = vec![false; count];
    let mut scratch = Vec::new();
    for column in columns {
        if let FragmentColumn::Codes { codes, dictionary, .. } = column
            && *dictionary == of
        {
            for code in codes.codes(&mut scratch) {
                if let Some(u) = used.get_mut(*code as usize) {
                    *u = true;
                }
            }
        }
    }
    used
}

/// Whether codes and dictionary take hardly more space than plain pages would: codes serve queries
/// better.
pub fn dictionary_pays(dictionary: &Dictionary, rows: u64) -> bool {
    let count = dictionary.len();
    if count <= DICTIONARY_ALWAYS_MAX {
        return true;
    }
    let code_bits = rows * u64::from(width_of(count as u64 - 1));
    let (dictionary_bits, plain_bits) = match dictionary.values() {
        Values::Int(v) => {
            let range = v[count - 1].wrapping_sub(v[0]) as u64;
            let width = u64::from(width_of(range));
            (count as u64 * width, rows * width)
        }
        Values::Wide(_) => (count as u64 * 128, rows * 128),
        // Symbols shorten text to about half, and a length is 6 bits or so.
        Values::Bytes(v) => {
            let bits = v.bytes.len() as u64 * 8;
            (bits / 2 + count as u64 * 6, rows * (bits / count as u64 / 2 + 6))
        }
    };
    code_bits + dictionary_bits <= plain_bits + plain_bits / 50
}

/// Whether rows that repeat become runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    Found,
    NotWanted,
}

fn pack_joined(
    columns: &[FragmentColumn],
    joined: JoinedDictionary,
    wanted: Runs,
) -> PartitionColumn {
    let null = joined.dictionary.len() as u16;
    let (mut translated, mut scratch) = (Vec::new(), Vec::new());
    let pages = columns
        .iter()
        .filter_map(|column| {
            let FragmentColumn::Codes { codes, dictionary, .. } = column else { return None };
            let table = &joined.tables[*dictionary as usize];
            let given = codes.codes(&mut scratch);
            let distinct = joined.dictionary.len();
            let (runs, values) = match codes.lengths() {
                _ if wanted == Runs::NotWanted => (None, None),
                Some(lengths) => {
                    let lengths = lengths.iter().map(|l| u32::from(*l)).collect();
                    let bits = usize::from(width_of(distinct as u64));
                    let runs = RowRuns::of_lengths(lengths, bits);
                    let values = runs.as_ref().map(|r| r.values(given));
                    (runs, values)
                }
                None => {
                    let runs = RowRuns::find(given, distinct);
                    let values =
                        runs.as_ref().map(|r| r.rows().map(|i| given[i]).collect::<Cow<'_, _>>());
                    (runs, values)
                }
            };
            let stored = runs.zip(values).and_then(|(runs, values)| {
                translate(&values, table, &mut translated);
                runs.store_codes(&encode_codes_u16(&translated, null))
            });
            Some(stored.unwrap_or_else(|| {
                translate(codes.of_rows(&mut scratch), table, &mut translated);
                encode_codes_u16(&translated, null)
            }))
        })
        .collect();
    PartitionColumn { dictionary: Some(joined.dictionary), symbols: Vec::new(), pages }
}

/// `out[i] = table[codes[i]]`; codes past the table (NULL) take its last entry.
fn translate(codes: &[u16], table: &[u16], out: &mut Vec<u16>) {
    out.clear();
    let last = table.len() - 1;
    out.extend(codes.iter().map(|c| table[(*c as usize).min(last)]));
}

/// Plain pages for all fragments. Symbols are made of the text of all of them, whether they came as codes or as values:
/// which they are depends on which worker met too many values first.
fn compress_plain(
    mut columns: Vec<FragmentColumn>,
    temporaries: &[TemporaryDictionary],
    encoder: Option<&SymbolEncoder>,
    physical: Physical,
) -> Result<PartitionColumn> {
    let trained = match (physical, encoder) {
        (Physical::Bytes, None) => {
            columns =
                columns.into_iter().map(|c| to_values(c, temporaries)).collect::<Result<_>>()?;
            train_on(&columns)
        }
        _ => None,
    };
    let encoder = encoder.or(trained.as_ref());
    let mut pages = Vec::with_capacity(columns.len());
    for column in columns {
        pages.push(match to_values(column, temporaries)? {
            FragmentColumn::Plain(plain) => encode_owned(plain, encoder)?,
            FragmentColumn::Page(page) => page,
            FragmentColumn::Codes { .. } => {
                return Err(Error::Corrupt("codes where values were looked up".into()));
            }
        });
    }
    let symbols = match encoder {
        Some(e) if physical == Physical::Bytes => vec![e.table()],
        _ => Vec::new(),
    };
    Ok(PartitionColumn { dictionary: None, symbols, pages })
}

/// A fragment with the values that its codes stand for.
fn to_values(
    column: FragmentColumn,
    temporaries: &[TemporaryDictionary],
) -> Result<FragmentColumn> {
    let FragmentColumn::Codes { codes, dictionary, .. } = column else { return Ok(column) };
    let values = look_up(codes.of_rows(&mut Vec::new()), &temporaries[dictionary as usize])?;
    Ok(FragmentColumn::Plain(values))
}

/// Symbols for the texts of all fragments: the first may hold a few that are short, and the others be of
/// another kind.
fn train_on(columns: &[FragmentColumn]) -> Option<SymbolEncoder> {
    let texts = columns.iter().filter_map(|column| match column {
        FragmentColumn::Plain(Plain { values: Values::Bytes(strings), .. }) => Some(strings),
        _ => None,
    });
    let texts: Vec<&Strings> = texts.collect();
    (!texts.is_empty()).then(|| SymbolEncoder::train_strings(&texts))
}

/// Encodes a plain column; text with the symbols of `encoder` as table 1.
///
/// # Errors
/// `Limit` when its text is over 4 GiB.
pub fn encode_column(plain: &Plain, encoder: Option<&SymbolEncoder>) -> Result<Page> {
    let (Values::Bytes(strings), Some(encoder)) = (&plain.values, encoder) else {
        return encode_plain(plain);
    };
    match encoder.encode_strings(strings) {
        Some(encoded) => encode_symbols(&encoded, plain.nulls.as_ref(), encoder),
        None => encode_plain(plain),
    }
}

/// Encodes as [`encode_column`] does; the text is gone before its page is made.
fn encode_owned(mut plain: Plain, encoder: Option<&SymbolEncoder>) -> Result<Page> {
    let (Values::Bytes(strings), Some(encoder)) = (&mut plain.values, encoder) else {
        return encode_column(&plain, encoder);
    };
    let Some(encoded) = encoder.encode_strings(strings) else {
        return encode_plain(&plain);
    };
    drop(std::mem::take(strings));
    encode_symbols(&encoded, plain.nulls.as_ref(), encoder)
}

/// Provisional codes to values.
///
/// # Errors
/// `Limit` when their text is over 4 GiB.
fn look_up(codes: &[u16], temporary: &TemporaryDictionary) -> Result<Plain> {
    let mut plain = Plain::empty(temporary.values.physical());
    if let (Values::Bytes(to), Values::Bytes(from)) = (&mut plain.values, &temporary.values) {
        let rows = codes.iter().filter(|code| **code != NULL_CODE);
        let bytes = rows.map(|code| from.get(usize::from(*code)).len() as u64).sum();
        if !to.has_room(bytes) {
            return Err(Error::Limit(format!(
                "text of one column in {} rows is {bytes} bytes, over 4 GiB",
                codes.len()
            )));
        }
        to.bytes.reserve(bytes as usize);
    }
    let mut nulls = Bitmap::zeros(0);
    for code in codes {
        nulls.push(*code == NULL_CODE);
        if *code == NULL_CODE {
            plain.values.push_default();
        } else {
            push_from(&mut plain.values, &temporary.values, *code as usize);
        }
    }
    plain.nulls = (nulls.count_ones() > 0).then_some(nulls);
    Ok(plain)
}

/// Dictionaries by the sort step, for columns that came plain and must be coded all the same.
fn compress_sorted(
    columns: Vec<FragmentColumn>,
    temporaries: &[TemporaryDictionary],
    encoder: Option<&SymbolEncoder>,
    physical: Physical,
) -> Result<PartitionColumn> {
    let decoders = match encoder {
        Some(e) => vec![SymbolDecoder::open(&e.table())?],
        None => Vec::new(),
    };
    let mut sorted = Vec::with_capacity(columns.len());
    for column in columns {
        let plain = match column {
            FragmentColumn::Plain(plain) => plain,
            FragmentColumn::Codes { codes, dictionary, .. } => {
                look_up(codes.of_rows(&mut Vec::new()), &temporaries[dictionary as usize])?
            }
            FragmentColumn::Page(page) => decode_page(&page, &decoders, physical)?,
        };
        sorted.push(sort_column(&plain)?);
    }
    let inputs: Vec<&Dictionary> = sorted.iter().map(|s| &s.dictionary).collect();
    let (dictionary, translations) = merge_dictionaries(&inputs, physical)?;
    let null = dictionary.len() as u32;
    let pages = sorted
        .iter()
        .zip(&translations)
        .map(|(s, t)| {
            let codes: Vec<u32> =
                s.codes.iter().map(|c| t.get(*c as usize).map_or(null, |c| c.0)).collect();
            encode_codes_u32(&codes, null)
        })
        .collect();
    Ok(PartitionColumn { dictionary: Some(dictionary), symbols: Vec::new(), pages })
}

/// The values of a page of a fragment, which holds no codes; `encoder` is what its text was made with.
///
/// # Errors
/// `Corrupt` when it does not add up.
pub fn page_values(page: &Page, encoder: Option<&SymbolEncoder>) -> Result<Plain> {
    let decoder = encoder.map(|encoder| SymbolDecoder::open(&encoder.table())).transpose()?;
    let Some(physical) = page.detail.physical() else {
        return Err(Error::Corrupt("a fragment's page holds codes".into()));
    };
    decode_page(page, decoder.as_slice(), physical)
}

/// The values of a plain page; `decoders` are those of its symbols.
///
/// # Errors
/// `Corrupt` when it does not add up.
pub fn decode_page(page: &Page, decoders: &[SymbolDecoder], physical: Physical) -> Result<Plain> {
    let mut plain = Plain::empty(physical);
    let page = expand_runs(page)?;
    let view = page.view()?;
    view.append_values(decoders, &mut plain.values)?;
    if let Some(bits) = view.null_bits() {
        let mut nulls = Bitmap::zeros(0);
        nulls.extend_from_bytes(bits, view.rows());
        plain.nulls = Some(nulls);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_types::Strings;

    /// 65 rows of 64 MiB each were appended until an assertion failed.
    #[test]
    fn text_over_4_gib_is_over_the_limit() {
        let mut strings = Strings::default();
        strings.push(&vec![b'x'; 64 << 20]);
        let temporary = TemporaryDictionary { values: Values::Bytes(strings), stale: false };
        let found = look_up(&[0; 65], &temporary);
        assert!(matches!(found, Err(Error::Limit(_))), "{found:?}");
        let found = look_up(&[0, NULL_CODE], &temporary).unwrap();
        assert_eq!((found.len(), found.is_null(1)), (2, true));
    }
}

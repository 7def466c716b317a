//! Codes again for columns that left them without need.
//!
//! A worker's temporary dictionary holds values of rejects and of chunks that were parsed twice. These
//! can fill it, so that the column goes on plain, where the same values spread over two workers would
//! not have filled either. What is stored must not depend on that: when some dictionary may hold such
//! values, the values of the rows are counted, and if a dictionary may hold them the plain fragments
//! become codes.
//!
//! Cost: nothing in the usual case; else a look-up a row until there are too many values.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use coload_types::{Physical, Plain, Result, Value};

use crate::compress::decode_page;
use crate::{DictionaryLimit, FragmentColumn, NULL_CODE, ProvisionalCodes, TemporaryDictionary};

/// Turns the plain fragments of a column into codes of one more temporary dictionary if they left
/// codes for values that no row has.
///
/// # Errors
/// `Corrupt` when a fragment's page does not add up.
pub fn restore_codes(
    columns: &mut [FragmentColumn],
    temporaries: &mut Vec<TemporaryDictionary>,
    physical: Physical,
    limit: DictionaryLimit,
) -> Result<()> {
    let is_codes = |c: &FragmentColumn| matches!(c, FragmentColumn::Codes { .. });
    // Without a value in any dictionary the column was never meant to have codes.
    let in_doubt = temporaries.iter().any(|t| t.stale && !t.values.is_empty());
    if !in_doubt || columns.iter().all(is_codes) {
        return Ok(());
    }
    let mut values = used_values(columns, temporaries);
    let mut restored = TemporaryDictionary::empty(physical);
    let mut codes: HashMap<Value, u16> = HashMap::new();
    let mut plains = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let decoded;
        let plain = match column {
            FragmentColumn::Codes { .. } => continue,
            FragmentColumn::Plain(plain) => plain,
            FragmentColumn::Page(page) => {
                decoded = decode_page(page, &[], physical)?;
                &decoded
            }
        };
        match encode(plain, &mut values, &mut codes, &mut restored, limit) {
            Some(encoded) => plains.push((index, encoded)),
            None => return Ok(()),
        }
    }
    let dictionary = temporaries.len() as u32;
    temporaries.push(restored);
    for (index, codes) in plains {
        let nulls = codes.contains(&NULL_CODE);
        let codes = ProvisionalCodes::new(&codes, temporaries[dictionary as usize].values.len());
        columns[index] = FragmentColumn::Codes { codes, dictionary, nulls };
    }
    Ok(())
}

/// The values that some coded row has.
fn used_values(
    columns: &[FragmentColumn],
    temporaries: &[TemporaryDictionary],
) -> HashMap<Value, ()> {
    let mut used: Vec<Vec<bool>> =
        temporaries.iter().map(|t| vec![false; t.values.len()]).collect();
    let mut scratch = Vec::new();
    for column in columns {
        let FragmentColumn::Codes { codes, dictionary, .. } = column else { continue };
        for code in codes.codes(&mut scratch) {
            if let Some(used) = used[*dictionary as usize].get_mut(*code as usize) {
                *used = true;
            }
        }
    }
    let mut values = HashMap::new();
    for (temporary, used) in temporaries.iter().zip(used) {
        let indexes = used.iter().enumerate().filter(|(_, u)| **u);
        values.extend(indexes.map(|(i, _)| (temporary.values.get(i), ())));
    }
    values
}

/// The codes of a plain column; `None` when there are more values than a dictionary may hold.
fn encode(
    plain: &Plain,
    values: &mut HashMap<Value, ()>,
    codes: &mut HashMap<Value, u16>,
    restored: &mut TemporaryDictionary,
    limit: DictionaryLimit,
) -> Option<Vec<u16>> {
    let text_of = |value: &Value| if let Value::Bytes(text) = value { text.len() } else { 0 };
    let mut text_bytes: usize = values.keys().map(text_of).sum();
    let mut out = Vec::with_capacity(plain.len());
    for row in 0..plain.len() {
        let Some(value) = plain.get(row) else {
            out.push(NULL_CODE);
            continue;
        };
        let next = codes.len();
        match codes.entry(value) {
            Entry::Occupied(e) => out.push(*e.get()),
            Entry::Vacant(e) => {
                if values.insert(e.key().clone(), ()).is_none() {
                    text_bytes += text_of(e.key());
                }
                if !limit.holds(values.len(), text_bytes) {
                    return None;
                }
                restored.values.push(e.key());
                out.push(next as u16);
                e.insert(next as u16);
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_types::Values;

    use crate::CODES_PROVISIONAL_MAX;

    fn plain(values: impl Iterator<Item = i64>) -> FragmentColumn {
        let values = Values::Int(values.collect());
        FragmentColumn::Plain(Plain { values, nulls: None })
    }

    #[test]
    fn a_dictionary_filled_by_rejects_is_no_reason_to_leave_codes() {
        let limit = CODES_PROVISIONAL_MAX as i64;
        let full = TemporaryDictionary { values: Values::Int((0..limit).collect()), stale: true };
        let codes = |codes: &[u16]| ProvisionalCodes::new(codes, 9);
        let coded = FragmentColumn::Codes { codes: codes(&[3, 7, 3]), dictionary: 0, nulls: false };
        let mut temporaries = vec![full.clone()];
        let mut columns = vec![coded.clone(), plain([limit, 7, limit].into_iter())];
        restore_codes(&mut columns, &mut temporaries, Physical::Int, DictionaryLimit::default())
            .unwrap();
        assert_eq!(temporaries[1].values, Values::Int(vec![limit, 7]));
        let expected =
            FragmentColumn::Codes { codes: codes(&[0, 1, 0]), dictionary: 1, nulls: false };
        assert_eq!(columns, [coded.clone(), expected]);

        // As many values as a dictionary may hold, and one more: 3 is in a coded row only.
        for (last, restored) in [(limit, true), (limit + 1, false)] {
            let mut columns = vec![coded.clone(), plain(4..=last + 2)];
            columns.push(plain([7].into_iter()));
            let mut temporaries = vec![full.clone()];
            restore_codes(
                &mut columns,
                &mut temporaries,
                Physical::Int,
                DictionaryLimit::default(),
            )
            .unwrap();
            assert_eq!(temporaries.len() == 2, restored, "{last}");
        }
        let fresh = TemporaryDictionary { stale: false, ..full };
        let mut columns = vec![coded, plain([1].into_iter())];
        restore_codes(&mut columns, &mut vec![fresh], Physical::Int, DictionaryLimit::default())
            .unwrap();
        assert!(matches!(columns[1], FragmentColumn::Plain(_)));
    }
}

//! The merge step: partitions become one segment, each code rewritten once.
//!
//! ```text
//!   dictionaries    [a c d] [b c]  ->  [a b c d]
//!   translations    0 2 3    1 2       old code to new code, strictly increasing
//! ```
//!
//! All inputs are merged together. A page whose translation changes nothing is taken as it is, which
//! is most pages of columns with few values.
//!
//! Cost: sum of dictionary lengths times the number of inputs comparisons; a load, a look-up and a
//! store for each code that changes.
//!
//! Source: Krueger et al., "Fast Updates on Read-Optimized Databases Using Multi-Core CPUs",
//! PVLDB 5(1), 2011; seed 000, section 4.1 (merge step).

use std::cmp::Ordering;

use coload_page::Page;
use coload_page::runs::map_codes;
use coload_types::{Code, Dictionary, Error, Physical, Result, Strings, Values};

use crate::PartitionColumn;

/// Old code to new code of one merged input; strictly increasing.
pub type Translation = Vec<Code>;

/// Joins k sorted dictionaries into one and tells where every old code went.
///
/// Shape: n_1..n_k values in; n <= sum values out; k translations, each strictly increasing.
/// Cost: sum(n_i) * k comparisons, 4 bytes per old code; one comparison a value when all are equal.
///
/// # Errors
/// `Limit` when the result would hold more than `CODES_MAX` values, or text over 4 GiB.
pub fn merge_dictionaries(
    inputs: &[&Dictionary],
    physical: Physical,
) -> Result<(Dictionary, Vec<Translation>)> {
    if let Some(first) = inputs.first()
        && inputs[1..].iter().all(|d| d == first)
    {
        let identity: Translation = (0..first.len() as u32).map(Code).collect();
        return Ok(((*first).clone(), vec![identity; inputs.len()]));
    }
    let mut translations: Vec<Translation> =
        inputs.iter().map(|d| Vec::with_capacity(d.len())).collect();
    let values = match physical {
        Physical::Int => {
            let lists: Vec<&[i64]> = inputs
                .iter()
                .map(|d| if let Values::Int(v) = d.values() { &v[..] } else { &[] })
                .collect();
            Values::Int(merge_numbers(&lists, &mut translations))
        }
        Physical::Wide => {
            let lists: Vec<&[i128]> = inputs
                .iter()
                .map(|d| if let Values::Wide(v) = d.values() { &v[..] } else { &[] })
                .collect();
            Values::Wide(merge_numbers(&lists, &mut translations))
        }
        Physical::Bytes => Values::Bytes(merge_strings(inputs, &mut translations)?),
    };
    if inputs.iter().zip(&translations).any(|(d, t)| d.len() != t.len()) {
        return Err(Error::Corrupt("dictionaries of different types in one column".into()));
    }
    Ok((Dictionary::new(values)?, translations))
}

fn merge_numbers<T: Ord + Copy>(lists: &[&[T]], translations: &mut [Translation]) -> Vec<T> {
    let mut out = Vec::new();
    let mut heads = vec![0usize; lists.len()];
    loop {
        let least = lists.iter().zip(&heads).filter_map(|(l, h)| l.get(*h)).min().copied();
        let Some(least) = least else { return out };
        let code = Code(out.len() as u32);
        out.push(least);
        for ((list, head), translation) in lists.iter().zip(&mut heads).zip(&mut *translations) {
            if list.get(*head) == Some(&least) {
                translation.push(code);
                *head += 1;
            }
        }
    }
}

fn merge_strings(inputs: &[&Dictionary], translations: &mut [Translation]) -> Result<Strings> {
    let empty = Strings::default();
    let lists: Vec<&Strings> =
        inputs.iter().map(|d| if let Values::Bytes(s) = d.values() { s } else { &empty }).collect();
    let mut out = Strings::default();
    let mut heads = vec![0usize; lists.len()];
    loop {
        let mut least: Option<usize> = None;
        for (i, list) in lists.iter().enumerate() {
            if heads[i] < list.len()
                && least.is_none_or(|l| {
                    list.get(heads[i]).cmp(lists[l].get(heads[l])) == Ordering::Less
                })
            {
                least = Some(i);
            }
        }
        let Some(least) = least else { return Ok(out) };
        let value = lists[least].get(heads[least]);
        if !out.has_room(value.len() as u64) {
            return Err(Error::Limit(
                "a dictionary over 4 GiB; load without --dictionaries always".into(),
            ));
        }
        let code = Code(out.len() as u32);
        out.push(value);
        for ((list, head), translation) in lists.iter().zip(&mut heads).zip(&mut *translations) {
            if *head < list.len() && list.get(*head) == value {
                translation.push(code);
                *head += 1;
            }
        }
    }
}

/// Merges one column of the partitions of a segment, in order.
///
/// # Errors
/// `Limit` when the dictionary would hold too many values, `Corrupt` when a page does not fit its
/// dictionary.
pub fn merge_column(
    partitions: Vec<PartitionColumn>,
    physical: Physical,
) -> Result<PartitionColumn> {
    let with_dictionary: Vec<&Dictionary> =
        partitions.iter().filter_map(|p| p.dictionary.as_ref()).collect();
    if with_dictionary.len() <= 1 {
        return Ok(append_pages(partitions));
    }
    let (dictionary, translations) = merge_dictionaries(&with_dictionary, physical)?;
    let mut translations = translations.into_iter();
    let merged = dictionary.len() as u32;
    let mut translated = Vec::with_capacity(partitions.len());
    for mut partition in partitions {
        if let Some(old) = partition.dictionary.take() {
            let translation = translations.next().unwrap_or_default();
            let last_stays = translation.last().is_none_or(|c| c.0 as usize + 1 == old.len());
            for page in &mut partition.pages {
                // NULL's code moves whenever the dictionary grows.
                let null_stays = page.nulls == 0 || merged as usize == old.len();
                if !(last_stays && null_stays) {
                    translate_page(page, &translation, merged)?;
                }
            }
        }
        translated.push(partition);
    }
    let mut column = append_pages(translated);
    column.dictionary = Some(dictionary);
    Ok(column)
}

/// Rewrites the codes of a `Codes` page; leaves other pages alone.
fn translate_page(page: &mut Page, translation: &[Code], null: u32) -> Result<()> {
    if page.detail.is_codes() {
        *page = map_codes(page, |c| translation.get(c as usize).map(|c| c.0), null)?;
    }
    Ok(())
}

/// Puts partitions behind each other; the first dictionary found is the column's.
fn append_pages(partitions: Vec<PartitionColumn>) -> PartitionColumn {
    let mut column = PartitionColumn { dictionary: None, symbols: Vec::new(), pages: Vec::new() };
    for mut partition in partitions {
        let before = column.symbols.len() as u32;
        for page in &mut partition.pages {
            page.detail.shift_symbols(before);
        }
        column.dictionary = column.dictionary.or(partition.dictionary);
        column.symbols.append(&mut partition.symbols);
        column.pages.append(&mut partition.pages);
    }
    column
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use coload_page::bitpack::BLOCK;
    use coload_page::{PageView, encode_codes_u32};

    fn ints(values: &[i64]) -> Dictionary {
        Dictionary::new(Values::Int(values.to_vec())).unwrap()
    }

    #[test]
    fn merging_disjoint_dictionaries_keeps_both_orders() {
        let (a, b) = (ints(&[1, 5, 9]), ints(&[2, 5]));
        let (merged, translations) = merge_dictionaries(&[&a, &b], Physical::Int).unwrap();
        assert_eq!(merged, ints(&[1, 2, 5, 9]));
        assert_eq!(translations, [vec![Code(0), Code(2), Code(3)], vec![Code(1), Code(2)]]);
    }

    #[test]
    fn merged_rows_are_the_rows_of_the_partitions() {
        let partition = |dictionary: &[i64], codes: &[u32]| PartitionColumn {
            dictionary: Some(ints(dictionary)),
            symbols: Vec::new(),
            pages: vec![encode_codes_u32(codes, dictionary.len() as u32)],
        };
        let parts = vec![partition(&[3, 7], &[0, 1, 2, 1]), partition(&[5, 7], &[2, 0, 1])];
        let merged = merge_column(parts, Physical::Int).unwrap();
        let dictionary = merged.dictionary.unwrap();
        let mut rows = Vec::new();
        for page in &merged.pages {
            let PageView::Codes(view) = page.view().unwrap() else { panic!("codes stay codes") };
            let mut block = [0; BLOCK];
            let count = view.unpack(0, &mut block);
            rows.extend(block[..count].iter().map(|c| dictionary.get(Code(*c))));
        }
        let int = |v: i64| Some(coload_types::Value::Int(v));
        assert_eq!(rows, [int(3), int(7), None, int(7), None, int(5), int(7)]);
    }
}

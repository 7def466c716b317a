//! Files of Parquet, of any bytes between their magic: all columns of all row groups, in two parts, and what is said of
//! their values.
#![no_main]

use std::sync::Arc;

use coload_parquet::{
    ColumnHints, ColumnMap, ColumnWalk, Footer, LeafRead, Leaves, MAGIC, ParquetField, TAIL_BYTES,
    footer_bytes, read_dictionary, read_lists, read_page, read_rows, rows_that_begin, walk_lists,
};
use libfuzzer_sys::fuzz_target;

/// Bytes that anything may take.
const BYTES_MAX: u64 = 16 << 20;

fuzz_target!(|input: &[u8]| {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(input);
    let _ = read_all(&file);
});

fn read_all(file: &Vec<u8>) -> coload_arrow::Result<()> {
    let tail = &file[file.len().saturating_sub(TAIL_BYTES)..];
    let length = footer_bytes(tail, file.len() as u64)? as usize;
    let start = file.len() - TAIL_BYTES - length;
    let footer = Footer::decode(&file[start..start + length], start as u64, BYTES_MAX, |all| {
        let numbers = all.iter().flat_map(ParquetField::leaves).map(|stored| stored.leaf).collect();
        Ok(Leaves { numbers, with_hints: true })
    })?;
    for group in footer.groups.iter().filter(|group| group.rows < 1 << 20) {
        for hints in &group.hints {
            let _ = read_hints(file, hints, start as u64, group.rows);
        }
        let mut at = 0;
        for field in &footer.fields {
            let chunks = &group.columns[at..at + field.leaves().len()];
            at += chunks.len();
            // What is wrong with one column is no matter of the next.
            let _ = read_field(file, field, chunks, group.rows);
        }
    }
    Ok(())
}

fn read_hints(
    file: &Vec<u8>,
    hints: &ColumnHints,
    end: u64,
    rows: u64,
) -> coload_arrow::Result<()> {
    let mut hashes = Vec::new();
    hints.push_hash_of_int(rows as i64, &mut hashes);
    hints.push_hash_of_text(b"text", &mut hashes);
    hints.may_have(&hashes, end, file)?;
    if !hints.has_page_index(end) {
        return Ok(());
    }
    let pages = hints.pages(rows, file)?.unwrap_or_default();
    assert!(pages.windows(2).all(|pair| pair[0].first_row < pair[1].first_row));
    assert!(pages.iter().all(|page| page.first_row < rows));
    Ok(())
}

/// The pages of a column chunk, and its dictionary.
enum Pages {
    InOrder(ColumnWalk),
    All(ColumnMap),
}

fn read_field(
    file: &Vec<u8>,
    field: &ParquetField,
    chunks: &[coload_parquet::ColumnAt],
    rows: u64,
) -> coload_arrow::Result<()> {
    let mut read = Vec::new();
    for (stored, chunk) in field.leaves().iter().zip(chunks) {
        let page = |page: &_| read_page(chunk, page, file, BYTES_MAX);
        read.push(match stored.is_in_lists() {
            false => {
                let mut walk = ColumnWalk::new(chunk, rows);
                walk.find(1, file, BYTES_MAX)?;
                let first = walk.pages_of(&(0..1));
                let dictionary = read_dictionary(stored, &first, page, BYTES_MAX)?;
                (Pages::InOrder(walk), dictionary)
            }
            true => {
                let map = walk_lists(chunk, rows, file, BYTES_MAX, |at| {
                    rows_that_begin(stored, at, &page(at)?, BYTES_MAX)
                })?;
                let dictionary = read_dictionary(stored, &map, page, BYTES_MAX)?;
                (Pages::All(map), dictionary)
            }
        });
    }
    for part in [0..rows / 2, rows / 2..rows] {
        let count = (part.end - part.start) as usize;
        let mut maps = Vec::new();
        for (pages, _) in &mut read {
            maps.push(match pages {
                Pages::All(map) => map.clone(),
                Pages::InOrder(walk) => {
                    walk.find(part.end, file, BYTES_MAX)?;
                    walk.pages_of(&part)
                }
            });
        }
        let mut pages: Vec<_> = chunks
            .iter()
            .zip(&maps)
            .map(|(chunk, map)| {
                move |number: usize| {
                    read_page(chunk, map.page(number), file, BYTES_MAX).map(Arc::new)
                }
            })
            .collect();
        let slice = match &field.nested {
            Some(nested) => {
                let leaves = read.iter().zip(&maps).zip(&mut pages);
                let mut leaves: Vec<LeafRead<'_>> = leaves
                    .map(|(((_, dictionary), map), page)| LeafRead {
                        map,
                        dictionary: dictionary.as_ref(),
                        page,
                    })
                    .collect();
                read_lists(nested, &mut leaves, part, BYTES_MAX)?
            }
            None => {
                let (Some(stored), Some((_, dictionary)), Some(map), Some(page)) =
                    (&field.stored, read.first(), maps.first(), pages.first_mut())
                else {
                    return Ok(());
                };
                // As places in the dictionary too, where all of them are.
                if map.is_coded() {
                    let keyed = (dictionary.as_ref(), true);
                    let slice = read_rows(stored, map, part.clone(), keyed, page, BYTES_MAX)?;
                    assert_eq!(slice.rows, count);
                }
                read_rows(stored, map, part, (dictionary.as_ref(), false), page, BYTES_MAX)?
            }
        };
        assert_eq!(slice.rows, count);
    }
    Ok(())
}

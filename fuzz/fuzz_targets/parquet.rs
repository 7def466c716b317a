//! Files of Parquet, of any bytes between their magic: all columns of all row groups, in two parts.
#![no_main]

use std::sync::Arc;

use coload_parquet::{
    Footer, LeafRead, MAGIC, ParquetField, TAIL_BYTES, footer_bytes, read_dictionary, read_lists, read_page, read_rows,
    rows_that_begin, walk_column, walk_lists,
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
    let mut fields = Vec::new();
    let footer = Footer::decode(&file[start..start + length], start as u64, BYTES_MAX, |all| {
        fields = all.to_vec();
        Ok(all.iter().flat_map(ParquetField::leaves).map(|stored| stored.leaf).collect())
    })?;
    for group in footer.groups.iter().filter(|group| group.rows < 1 << 20) {
        let mut at = 0;
        for field in &fields {
            let chunks = &group.columns[at..at + field.leaves().len()];
            at += chunks.len();
            // What is wrong with one column is no matter of the next.
            let _ = read_field(file, field, chunks, group.rows);
        }
    }
    Ok(())
}

fn read_field(
    file: &Vec<u8>,
    field: &ParquetField,
    chunks: &[coload_parquet::ColumnAt],
    rows: u64,
) -> coload_arrow::Result<()> {
    let mut read = Vec::new();
    for (stored, chunk) in field.leaves().iter().zip(chunks) {
        let map = match stored.is_in_lists() {
            false => walk_column(chunk, rows, file, BYTES_MAX)?,
            true => walk_lists(chunk, rows, file, BYTES_MAX, |page| {
                rows_that_begin(stored, page, &read_page(chunk, page, file, BYTES_MAX)?, BYTES_MAX)
            })?,
        };
        let dictionary =
            read_dictionary(stored, &map, |page| read_page(chunk, page, file, BYTES_MAX), BYTES_MAX)?;
        read.push((map, dictionary));
    }
    for part in [0..rows / 2, rows / 2..rows] {
        let count = (part.end - part.start) as usize;
        let mut pages: Vec<_> = chunks
            .iter()
            .zip(&read)
            .map(|(chunk, (map, _))| {
                move |number: usize| read_page(chunk, map.page(number), file, BYTES_MAX).map(Arc::new)
            })
            .collect();
        let slice = match &field.nested {
            Some(nested) => {
                let leaves = read.iter().zip(&mut pages);
                let mut leaves: Vec<LeafRead<'_>> = leaves
                    .map(|((map, dictionary), page)| LeafRead { map, dictionary: dictionary.as_ref(), page })
                    .collect();
                read_lists(nested, &mut leaves, part, BYTES_MAX)?
            }
            None => {
                let (Some(stored), Some((map, dictionary)), Some(page)) =
                    (&field.stored, read.first(), pages.first_mut())
                else {
                    return Ok(());
                };
                read_rows(stored, map, part, (dictionary.as_ref(), false), page, BYTES_MAX)?
            }
        };
        assert_eq!(slice.rows, count);
    }
    Ok(())
}

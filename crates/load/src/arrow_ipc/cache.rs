//! Dictionaries of files that were read, for the chunks that come next.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use coload_arrow::{
    BatchLayout, Body, Buffers, DictionariesOf, DictionaryBatch, Fault, Field, Message, Slice,
    read_values,
};
use coload_threads::lock;
use coload_types::Result;

use super::files::{ArrowFile, BatchAt, DictionaryAt, message_at};
use super::input::fault;
use crate::typed::{Asked, BlockFile, Dictionary, FileBody, batch_bytes_max};

/// Share of what a batch may take that dictionaries may which nobody uses at this moment.
const KEPT_SHARE: u64 = 2;

/// A dictionary as batches see it: its file and number, and the first and the last of the messages that it was made of.
type Key = (u32, i64, usize, usize);

/// Dictionaries that were read last, the oldest first.
#[derive(Debug, Default)]
pub struct Dictionaries {
    kept: Mutex<VecDeque<(Key, Arc<Dictionary>)>>,
}

impl Dictionaries {
    /// The dictionary of a number, as a batch sees it.
    ///
    /// # Errors
    /// `Input` when there is none or it is damaged, `Limit` when it is too large.
    pub fn get(
        &self,
        file: &BlockFile<ArrowFile>,
        batch: &BatchAt,
        id: i64,
        asked: Asked<'_>,
    ) -> Result<Arc<Dictionary>> {
        let seen = |(_, at): &(usize, &DictionaryAt)| at.id == id && at.before <= batch.number;
        let all: Vec<(usize, &DictionaryAt)> =
            file.is.dictionaries.iter().enumerate().filter(seen).collect();
        let first = all.iter().rposition(|(_, at)| !at.is_delta).unwrap_or(0);
        let (Some((from, _)), Some((to, _))) = (all.get(first), all.last()) else {
            let missing = Fault::Damaged(format!("dictionary {id} is not there"));
            return Err(fault(asked, batch.file as usize, batch.place.start, missing));
        };
        let key = (batch.file, id, *from, *to);
        let Some(field) = file.is.fields.schema.field_of_dictionary(id) else {
            let missing = Fault::Damaged(format!("dictionary {id} of no field"));
            return Err(fault(asked, batch.file as usize, batch.place.start, missing));
        };
        // Its values may have others within them. None stands within itself, which the schema was asked.
        let inner = field.dictionaries().into_iter();
        let inner = inner.map(|id| Ok((id, self.get(file, batch, id, asked)?)));
        let inner = inner.collect::<Result<Vec<_>>>()?;
        let find = |id: i64| {
            let found = inner.iter().find(|(inner, _)| *inner == id);
            let found = found.map(|(_, dictionary)| Arc::clone(dictionary));
            found.ok_or_else(|| Fault::Damaged(format!("dictionary {id} is not there")))
        };
        // Who wants the same waits here, and reads it no second time.
        let mut kept = lock(&self.kept);
        if let Some((_, found)) = kept.iter().find(|(other, _)| *other == key) {
            return Ok(Arc::clone(found));
        }
        let mut made: Option<Dictionary> = None;
        for (_, at) in &all[first..] {
            let bytes_max = batch_bytes_max(asked);
            let left = bytes_max.saturating_sub(made.as_ref().map_or(0, Dictionary::bytes) as u64);
            let part = part_at((file, &field), at, left, &find);
            let part =
                part.map_err(|error| fault(asked, batch.file as usize, at.place.start, error))?;
            made = Some(match made {
                None => Dictionary::new(field.values_read(), part),
                Some(made) => made.with(part),
            });
        }
        let Some(made) = made.map(Arc::new) else {
            let missing = Fault::Damaged(format!("dictionary {id} has no values"));
            return Err(fault(asked, batch.file as usize, batch.place.start, missing));
        };
        kept.push_back((key, Arc::clone(&made)));
        let bytes = |kept: &VecDeque<(Key, Arc<Dictionary>)>| -> u64 {
            kept.iter().map(|(_, dictionary)| dictionary.bytes() as u64).sum()
        };
        while kept.len() > 1 && bytes(&kept) > batch_bytes_max(asked) / KEPT_SHARE {
            kept.pop_front();
        }
        Ok(made)
    }
}

/// The values of a message, which are of a field.
fn part_at(
    (file, field): (&BlockFile<ArrowFile>, &Field),
    at: &DictionaryAt,
    bytes_max: u64,
    dictionaries: DictionariesOf<'_>,
) -> std::result::Result<Slice<'static>, Fault> {
    let Message::Dictionary(dictionary) = message_at(&file.file, &at.place)? else {
        return Err(Fault::Damaged("a message that is no dictionary".to_owned()));
    };
    let body = FileBody { file: &file.file, start: at.place.body() };
    read_dictionary(field, &dictionary, &body, bytes_max, dictionaries)
}

/// The values of a dictionary.
///
/// # Errors
/// As [`read_values`].
pub fn read_dictionary(
    field: &Field,
    dictionary: &DictionaryBatch,
    body: &dyn Body,
    bytes_max: u64,
    dictionaries: DictionariesOf<'_>,
) -> std::result::Result<Slice<'static>, Fault> {
    let batch = &dictionary.batch;
    let layout = BatchLayout::new([field], batch)?;
    let buffers = Buffers::new(batch, body, bytes_max);
    let read = read_values(field, &layout.fields[0], &buffers, 0..batch.rows, dictionaries)?;
    Ok(read.slice.into_owned())
}

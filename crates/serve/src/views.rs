//! Strings as Arrow views: 16 bytes each, short strings inside, long ones by reference.

use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use coload_store::SegmentFile;
use coload_threads::lock;
use coload_types::{DataType, Error, Result, Strings, Values};
use datafusion::arrow::{
    array::{ArrayRef, BinaryViewArray, StringViewArray, make_view},
    buffer::{Buffer, NullBuffer},
};

/// Longest string that a view holds inside.
const INLINE_BYTES_MAX: usize = 12;

/// Strings being collected into an array.
#[derive(Debug, Default)]
pub(crate) struct Views {
    views: Vec<u128>,
    /// Long strings, one after the other.
    long: Vec<u8>,
    /// Whether all short strings so far are ASCII.
    short_ascii: bool,
}

impl Views {
    /// Room for `count` strings.
    pub fn with_capacity(count: usize) -> Self {
        Views { views: Vec::with_capacity(count), long: Vec::new(), short_ascii: true }
    }

    /// Number of strings that were added so far.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Appends a string.
    ///
    /// # Errors
    /// `Limit` when the long strings of a batch are over 2 GiB.
    pub fn push(&mut self, string: &[u8]) -> Result<()> {
        let offset = self.long.len();
        if string.len() > INLINE_BYTES_MAX {
            if offset + string.len() > i32::MAX as usize {
                return Err(Error::Limit("text of one batch of rows over 2 GiB".into()));
            }
            self.long.extend_from_slice(string);
        } else {
            self.short_ascii &= string.is_ascii();
        }
        self.views.push(make_view(string, 0, offset as u32));
        Ok(())
    }

    /// The strings that codes stand for, of which these are the values; the empty one for a code that is none of theirs.
    pub fn gather(mut self, codes: &[u16]) -> Self {
        let values = std::mem::take(&mut self.views);
        let view = |code: &u16| values.get(usize::from(*code)).copied().unwrap_or_default();
        self.views = codes.iter().map(view).collect();
        self
    }

    /// The array of a column of this type.
    ///
    /// # Errors
    /// `Corrupt` when it is text and not UTF-8.
    pub fn into_array(self, nulls: Option<NullBuffer>, data_type: DataType) -> Result<ArrayRef> {
        if self.short_ascii && self.long.is_ascii() && !matches!(data_type, DataType::Binary(_)) {
            let buffers: Arc<[Buffer]> = Arc::new([Buffer::from_vec(self.long)]);
            // SAFETY: `push` made the views of these bytes, all of them ASCII.
            let array =
                unsafe { StringViewArray::new_unchecked(self.views.into(), buffers, nulls) };
            return Ok(Arc::new(array));
        }
        let views = self.views.into();
        let buffers = vec![Buffer::from_vec(self.long)];
        if let DataType::Binary(_) = data_type {
            // SAFETY: `push` made the views of these bytes.
            let array = unsafe { BinaryViewArray::new_unchecked(views, buffers, nulls) };
            return Ok(Arc::new(array));
        }
        let array = StringViewArray::try_new(views, buffers, nulls)
            .map_err(|e| Error::Corrupt(format!("text in a page: {e}")))?;
        Ok(Arc::new(array))
    }
}

/// The strings of a dictionary as views, made once for an open segment.
#[derive(Debug)]
pub(crate) struct DictionaryViews {
    /// A view for each code, and the empty one for NULL.
    views: Vec<u128>,
    /// Where each buffer starts and ends in the dictionary's bytes. The buffers themselves hold the
    /// segment, which must not live for as long as this is kept, so they are made for each batch.
    pieces: Vec<(usize, usize)>,
}

/// Views made so far, by segment and column.
#[derive(Default)]
struct Made {
    by_column: HashMap<(usize, usize), (Weak<SegmentFile>, Arc<DictionaryViews>)>,
    /// How many entries there may be until those of closed segments are dropped.
    look_at: usize,
}

impl Made {
    fn insert(&mut self, segment: &Arc<SegmentFile>, column: usize, views: Arc<DictionaryViews>) {
        if self.by_column.len() >= self.look_at {
            self.by_column.retain(|_, (owner, _)| owner.strong_count() > 0);
            // So looking costs as little as inserting.
            self.look_at = 2 * self.by_column.len() + 16;
        }
        segment.add_held(size_of_val(&views.views[..]) as u64);
        let key = (Arc::as_ptr(segment) as usize, column);
        self.by_column.insert(key, (Arc::downgrade(segment), views));
    }
}

static MADE: Mutex<Option<Made>> = Mutex::new(None);

impl DictionaryViews {
    /// The views of a column's dictionary.
    ///
    /// # Errors
    /// `Corrupt` when there is none, or it is text and not UTF-8.
    pub fn of(segment: &Arc<SegmentFile>, column: usize, data_type: DataType) -> Result<Arc<Self>> {
        // The address tells open segments apart as long as they are open, which `upgrade` proves.
        let key = (Arc::as_ptr(segment) as usize, column);
        if let Some((owner, views)) = lock(&MADE).get_or_insert_default().by_column.get(&key)
            && owner.upgrade().is_some_and(|open| Arc::ptr_eq(&open, segment))
        {
            return Ok(Arc::clone(views));
        }
        let made = Arc::new(Self::make(segment, column, data_type)?);
        lock(&MADE).get_or_insert_default().insert(segment, column, Arc::clone(&made));
        Ok(made)
    }

    fn make(segment: &Arc<SegmentFile>, column: usize, data_type: DataType) -> Result<Self> {
        let strings = strings_of(segment, column)?;
        if data_type.is_text() {
            check_utf8(strings).map_err(|e| Error::corrupt(segment.path(), e))?;
        }
        let pieces = pieces(strings);
        let mut views = Vec::with_capacity(strings.len() + 1);
        let mut piece = 0;
        let mut start = 0;
        for (string, end) in strings.iter().zip(&strings.ends) {
            while start >= pieces[piece].1 && piece + 1 < pieces.len() {
                piece += 1;
            }
            let offset = start - pieces[piece].0;
            views.push(make_view(string, piece as u32, offset as u32));
            start = *end as usize;
        }
        views.push(0);
        Ok(DictionaryViews { views, pieces })
    }

    /// Number of values of the dictionary.
    pub fn len(&self) -> usize {
        self.views.len() - 1
    }

    /// The view of a code that is at most [`Self::len`].
    #[inline]
    pub fn view(&self, code: u32) -> u128 {
        self.views[code as usize]
    }

    /// What the views point into; `segment` and `column` are those that they were made for.
    ///
    /// # Errors
    /// `Corrupt` when the column has no dictionary of text.
    pub fn buffers(&self, segment: &Arc<SegmentFile>, column: usize) -> Result<Arc<[Buffer]>> {
        let strings = strings_of(segment, column)?;
        Ok(self.pieces.iter().map(|(start, end)| borrow(segment, strings, *start, *end)).collect())
    }
}

/// The strings of a column's dictionary.
///
/// # Errors
/// `Corrupt` when there is none.
pub(crate) fn strings_of(segment: &SegmentFile, column: usize) -> Result<&Strings> {
    match segment.dictionary(column)?.map(|d| d.values()) {
        Some(Values::Bytes(strings)) => Ok(strings),
        _ => Err(Error::corrupt(segment.path(), "codes of text without dictionary")),
    }
}

/// Cuts the bytes of strings between strings, so that offsets into a piece fit 31 bits.
fn pieces(strings: &Strings) -> Vec<(usize, usize)> {
    let mut pieces = vec![(0, 0)];
    for end in &strings.ends {
        let end = *end as usize;
        if let Some(last) = pieces.last_mut() {
            if end - last.0 <= i32::MAX as usize {
                last.1 = end;
            } else {
                let start = last.1;
                pieces.push((start, end));
            }
        }
    }
    pieces
}

/// A buffer over bytes that the segment owns.
fn borrow(segment: &Arc<SegmentFile>, strings: &Strings, start: usize, end: usize) -> Buffer {
    let bytes = &strings.bytes[start..end];
    let Some(pointer) = NonNull::new(bytes.as_ptr().cast_mut()) else {
        return Buffer::from_vec(Vec::<u8>::new());
    };
    // SAFETY: the segment decodes a dictionary once, keeps it in a `OnceLock` and hands out shared
    // references only, so that the bytes stay where they are and as they are until the segment is
    // dropped; the buffer holds the segment.
    unsafe { Buffer::from_custom_allocation(pointer, bytes.len(), Arc::new(Arc::clone(segment))) }
}

fn check_utf8(strings: &Strings) -> std::result::Result<(), String> {
    let wrong = || "text in a dictionary is not UTF-8".to_owned();
    let all = str::from_utf8(&strings.bytes).map_err(|_| wrong())?;
    if strings.ends.iter().all(|end| all.is_char_boundary(*end as usize)) {
        Ok(())
    } else {
        Err(wrong())
    }
}

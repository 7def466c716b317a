//! Values of a column while its rows get another order, in the sort space.
//!
//! In DRAM they stay the vector that they were decoded into; elsewhere their bytes are one part of an extent, and are picked out of
//! that. Rows are picked in no order: the space is told how many lines of a cache that touches.

use coload_space::{Extent, Piece, Space};
use coload_types::Result;

/// A value of a fixed length.
pub(super) trait Fixed: Copy {
    const BYTES: usize;
    fn put(self, out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! fixed {
    ($($type:ty),*) => {$(
        impl Fixed for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline]
            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| <$type>::from_le_bytes(*bytes))
            }
        }
    )*};
}

fixed!(u8, u16, u32, u64, i128);

/// Values of a fixed length in a space.
#[derive(Debug)]
pub(super) enum Numbers<T> {
    Own(Vec<T>),
    Elsewhere(Box<dyn Extent>, u64),
}

impl<T: Fixed> Numbers<T> {
    /// Puts values into a space.
    ///
    /// # Errors
    /// Those of the space.
    pub fn put(values: Vec<T>, space: &dyn Space) -> Result<Self> {
        if space.is_dram() {
            return Ok(Numbers::Own(values));
        }
        let mut bytes = Vec::with_capacity(values.len() * T::BYTES);
        values.into_iter().for_each(|value| value.put(&mut bytes));
        let (mut writer, count) = (space.create()?, bytes.len() as u64);
        writer.append(bytes)?;
        Ok(Numbers::Elsewhere(writer.finish()?, count))
    }

    /// The values, to be picked from.
    ///
    /// # Errors
    /// Those of the space.
    pub fn view(&self) -> Result<NumbersView<'_, T>> {
        Ok(match self {
            Numbers::Own(values) => NumbersView::Own(values),
            Numbers::Elsewhere(extent, bytes) => {
                NumbersView::Bytes(extent.read(0, *bytes)?, &**extent)
            }
        })
    }
}

/// Values that are picked from.
#[derive(Debug)]
pub(super) enum NumbersView<'a, T> {
    Own(&'a [T]),
    Bytes(Piece<'a>, &'a dyn Extent),
}

impl<T: Fixed> NumbersView<'_, T> {
    /// The values of some rows, as a call makes them.
    ///
    /// # Errors
    /// `Corrupt` when a file of the space cannot be read.
    pub fn pick<U>(
        &self,
        rows: &[u32],
        space: &dyn Space,
        made: impl Fn(T) -> U,
    ) -> Result<Vec<U>> {
        space.touch(rows.len() as u64);
        match self {
            NumbersView::Own(values) => {
                Ok(rows.iter().map(|row| made(values[*row as usize])).collect())
            }
            NumbersView::Bytes(bytes, extent) => {
                let value = |row: &u32| made(T::read(&bytes[*row as usize * T::BYTES..]));
                let picked = rows.iter().map(value).collect();
                extent.check()?;
                Ok(picked)
            }
        }
    }
}

/// Picks rows page by page, as calls make their values, and gives them on; meanwhile the numbers lie in a space.
///
/// # Errors
/// Those of the space and of what takes them.
pub(super) fn pick<'r, T: Fixed, U>(
    numbers: Vec<T>,
    pages: impl Iterator<Item = &'r [u32]>,
    space: &dyn Space,
    value: impl Fn(T) -> U,
    mut take: impl FnMut(&'r [u32], Vec<U>) -> Result<()>,
) -> Result<()> {
    let numbers = Numbers::put(numbers, space)?;
    let view = numbers.view()?;
    for rows in pages {
        take(rows, view.pick(rows, space, &value)?)?;
    }
    Ok(())
}

/// Buckets of texts, each of which came in parts, in a space.
#[derive(Debug)]
pub(super) enum TextPages {
    /// Each part.
    Own(Vec<Vec<Vec<u8>>>),
    /// Where they are, and where each bucket begins; the last begins where the one before it ends.
    Elsewhere(Box<dyn Extent>, Vec<u64>),
}

impl TextPages {
    /// Puts parts of as many buckets into a space.
    ///
    /// # Errors
    /// Those of the space.
    pub fn put(parts: Vec<Vec<Vec<u8>>>, space: &dyn Space) -> Result<Self> {
        if space.is_dram() {
            return Ok(TextPages::Own(parts));
        }
        let count = parts.first().map_or(0, Vec::len);
        let (mut writer, mut starts) = (space.create()?, Vec::with_capacity(count + 1));
        let (mut parts, mut start) = (parts, 0);
        starts.push(start);
        for bucket in 0..count {
            let mut bytes = Vec::new();
            for part in &mut parts {
                match bytes.is_empty() {
                    true => bytes = std::mem::take(&mut part[bucket]),
                    false => bytes.append(&mut part[bucket]),
                }
            }
            start += bytes.len() as u64;
            starts.push(start);
            writer.append(bytes)?;
        }
        Ok(TextPages::Elsewhere(writer.finish()?, starts))
    }

    /// The bytes of a bucket.
    ///
    /// # Errors
    /// Those of the space.
    pub fn read(&self, bucket: usize) -> Result<Piece<'_>> {
        match self {
            TextPages::Own(parts) => {
                let mut filled = parts.iter().map(|part| &part[bucket]).filter(|b| !b.is_empty());
                let (first, second) = (filled.next(), filled.next());
                let Some(second) = second else {
                    return Ok(Piece::InPlace(first.map_or(&[][..], Vec::as_slice)));
                };
                let mut bytes = first.cloned().unwrap_or_default();
                bytes.extend_from_slice(second);
                filled.for_each(|part| bytes.extend_from_slice(part));
                let range = 0..bytes.len();
                Ok(Piece::Read(bytes, range))
            }
            TextPages::Elsewhere(extent, starts) => {
                extent.read(starts[bucket], starts[bucket + 1] - starts[bucket])
            }
        }
    }

    /// Checks that what was read was what is in the space.
    ///
    /// # Errors
    /// `Corrupt` when a file of the space cannot be read.
    pub fn check(&self) -> Result<()> {
        match self {
            TextPages::Own(_) => Ok(()),
            TextPages::Elsewhere(extent, _) => extent.check(),
        }
    }
}

//! Values of a column while its rows get another order, in the sort space.
//!
//! In DRAM they stay the vector that they were decoded into; elsewhere their bytes are one part of an extent, and are picked out of
//! that. Rows are picked in no order: the space is told how many lines of a cache that touches.

use coload_space::{Extent, Piece, Space};
use coload_types::{Error, Result};

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

/// The bytes of texts, page by page, in a space.
#[derive(Debug, Default)]
pub(super) struct TextPages {
    own: Vec<Vec<u8>>,
    elsewhere: Option<(Box<dyn Extent>, Vec<u64>)>,
}

impl TextPages {
    /// Puts the bytes of pages into a space.
    ///
    /// # Errors
    /// Those of the space.
    pub fn put(pages: Vec<Vec<u8>>, space: &dyn Space) -> Result<Self> {
        if space.is_dram() {
            return Ok(TextPages { own: pages, elsewhere: None });
        }
        let (mut writer, mut lengths) = (space.create()?, Vec::with_capacity(pages.len()));
        for page in pages {
            lengths.push(page.len() as u64);
            writer.append(page)?;
        }
        Ok(TextPages { own: Vec::new(), elsewhere: Some((writer.finish()?, lengths)) })
    }

    /// The bytes of each page.
    ///
    /// # Errors
    /// Those of the space.
    pub fn view(&self) -> Result<Vec<Piece<'_>>> {
        let Some((extent, lengths)) = &self.elsewhere else {
            return Ok(self.own.iter().map(|page| Piece::InPlace(page)).collect());
        };
        let mut start = 0;
        let page = |bytes: &u64| {
            let piece = extent.read(start, *bytes);
            start += bytes;
            piece
        };
        lengths.iter().map(page).collect()
    }

    /// Checks that what was picked was what is in the space.
    ///
    /// # Errors
    /// `Corrupt` when a file of the space cannot be read.
    pub fn check(&self) -> Result<()> {
        self.elsewhere.as_ref().map_or(Ok::<(), Error>(()), |(extent, _)| extent.check())
    }
}

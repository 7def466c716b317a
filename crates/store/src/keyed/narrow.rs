//! Numbers of a column in as few bytes as their range allows: rows are picked out of them in no order, and more of what is picked is
//! found in the caches.

use coload_page::PageDetail;
use coload_space::Space;
use coload_types::{Error, Result};

use super::sort_buffer::{Fixed, Numbers};

/// Numbers from 0 on.
#[derive(Debug)]
pub(super) enum Narrow {
    Byte(Vec<u8>),
    Short(Vec<u16>),
    Word(Vec<u32>),
    Long(Vec<u64>),
}

impl Narrow {
    /// Room for so many numbers of which none is over the greatest.
    pub fn up_to(greatest: u64, count: usize) -> Self {
        match greatest {
            0..=0xff => Narrow::Byte(Vec::with_capacity(count)),
            0x100..=0xffff => Narrow::Short(Vec::with_capacity(count)),
            0x1_0000..=0xffff_ffff => Narrow::Word(Vec::with_capacity(count)),
            _ => Narrow::Long(Vec::with_capacity(count)),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Narrow::Byte(numbers) => numbers.len(),
            Narrow::Short(numbers) => numbers.len(),
            Narrow::Word(numbers) => numbers.len(),
            Narrow::Long(numbers) => numbers.len(),
        }
    }

    /// Appends numbers, as a call makes them.
    ///
    /// # Errors
    /// `Corrupt` when one takes more bytes than the greatest.
    pub fn extend<T: Copy>(&mut self, from: &[T], number: impl Fn(T) -> u64) -> Result<()> {
        let greatest = || from.iter().fold(0, |all, from| all | number(*from));
        let numbers = from.iter().map(|from| number(*from));
        let fits = match self {
            Narrow::Byte(_) => greatest() <= u8::MAX.into(),
            Narrow::Short(_) => greatest() <= u16::MAX.into(),
            Narrow::Word(_) => greatest() <= u32::MAX.into(),
            Narrow::Long(_) => true,
        };
        if !fits {
            return Err(Error::Corrupt(
                "a number or code that is over the bounds of its column".into(),
            ));
        }
        match self {
            Narrow::Byte(all) => all.extend(numbers.map(|number| number as u8)),
            Narrow::Short(all) => all.extend(numbers.map(|number| number as u16)),
            Narrow::Word(all) => all.extend(numbers.map(|number| number as u32)),
            Narrow::Long(all) => all.extend(numbers),
        }
        Ok(())
    }

    /// Picks rows page by page, as calls make them, and gives them on; meanwhile the numbers lie in a space.
    ///
    /// # Errors
    /// Those of the space and of what takes them.
    pub fn pick<'r, U>(
        self,
        pages: impl Iterator<Item = &'r [u32]>,
        space: &dyn Space,
        value: impl Fn(u64) -> U,
        take: impl FnMut(&'r [u32], Vec<U>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Narrow::Byte(numbers) => pick(numbers, pages, space, |n| value(n.into()), take),
            Narrow::Short(numbers) => pick(numbers, pages, space, |n| value(n.into()), take),
            Narrow::Word(numbers) => pick(numbers, pages, space, |n| value(n.into()), take),
            Narrow::Long(numbers) => pick(numbers, pages, space, value, take),
        }
    }
}

/// As [`Narrow::pick`], of numbers of any type.
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

/// The least and the greatest number of pages; `None` if some do not tell.
pub(super) fn bounds<'p>(mut pages: impl Iterator<Item = &'p PageDetail>) -> Option<(i64, i64)> {
    pages.try_fold((i64::MAX, i64::MIN), |(least, greatest), page| match page {
        PageDetail::Int { min, max } => Some((least.min(*min), greatest.max(*max))),
        PageDetail::Codes { .. } | PageDetail::Wide { .. } | PageDetail::Text { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_space::Dram;

    use super::*;

    #[test]
    fn numbers_come_back_in_another_order_whatever_they_take() {
        let space = Dram::new("dram", u64::MAX);
        for greatest in [0, 255, 256, 65_535, 65_536, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let numbers = [greatest, 0, greatest / 3];
            let mut narrow = Narrow::up_to(greatest, 3);
            narrow.extend(&numbers, |number| number).unwrap();
            let (rows, mut picked) = ([2, 0, 1, 0], Vec::new());
            let take = |_: &[u32], page: Vec<u64>| {
                picked.extend(page);
                Ok(())
            };
            narrow.pick(rows.chunks(3), &space, |number| number, take).unwrap();
            assert_eq!(picked, rows.map(|row| numbers[row as usize]));
        }
    }

    #[test]
    fn a_number_over_the_greatest_is_told() {
        for greatest in [200, 60_000, 4_000_000_000] {
            let mut narrow = Narrow::up_to(greatest, 1);
            assert!(narrow.extend(&[greatest * 70_000], |number| number).is_err(), "{greatest}");
        }
    }
}

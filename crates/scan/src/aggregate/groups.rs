//! The dense groups of a segment: the codes of the grouping columns as one number.

use coload_page::bitpack::BLOCK;
use coload_page::{CodesPage, PageView};
use coload_store::{ExpandedPages, SegmentFile};
use coload_types::{Code, Error, Result, Value, simd_dispatch};

use super::GROUPS_MAX;
use super::vectors::Rows;
use crate::unpack::{unpack_rows, unpack_to_8, unpack_to_32};

/// A column by whose codes rows are grouped, in one segment.
#[derive(Debug, Clone)]
pub struct GroupColumn {
    column: usize,
    /// Codes there are, with NULL's if the column has NULLs.
    codes: u32,
    stride: u32,
}

/// All grouping columns; group `sum(code * stride)`.
#[derive(Debug, Clone)]
pub struct GroupSpace {
    columns: Vec<GroupColumn>,
    pub total: usize,
}

/// The grouping columns of one page.
pub struct GroupPage<'a> {
    columns: Vec<(CodesPage<'a>, &'a GroupColumn)>,
}

impl GroupSpace {
    /// Lays out the groups of a segment; `None` when a column has pages without codes or there are
    /// too many groups.
    pub fn new(segment: &SegmentFile, columns: &[usize]) -> Result<Option<Self>> {
        let mut space = GroupSpace { columns: Vec::with_capacity(columns.len()), total: 1 };
        for column in columns {
            let index = segment.column(*column)?.index();
            let all_codes = index.pages.iter().all(|p| p.detail.is_codes());
            let Some(values) = index.dictionary.as_ref().map(|d| d.rows as usize) else {
                return Ok(None);
            };
            let codes = values + usize::from(index.nulls() > 0);
            let total = space.total.saturating_mul(codes.max(1));
            if !all_codes || total > GROUPS_MAX {
                return Ok(None);
            }
            let stride = space.total as u32;
            space.columns.push(GroupColumn { column: *column, codes: codes as u32, stride });
            space.total = total;
        }
        Ok(Some(space))
    }

    /// The values of a group's columns.
    pub fn key(&self, segment: &SegmentFile, group: usize) -> Result<Vec<Option<Value>>> {
        let mut key = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let code = (group / column.stride as usize) % column.codes.max(1) as usize;
            let dictionary = segment
                .dictionary(column.column)?
                .ok_or_else(|| Error::Corrupt("codes without dictionary".into()))?;
            key.push(dictionary.get(Code(code as u32)));
        }
        Ok(key)
    }

    /// The grouping columns of a page.
    pub fn open<'a>(
        &'a self,
        segment: &'a SegmentFile,
        page: usize,
        expanded: &'a ExpandedPages,
    ) -> Result<GroupPage<'a>> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let PageView::Codes(codes) = segment.page(column.column, page, expanded)? else {
                return Err(Error::Corrupt("page of another type".into()));
            };
            columns.push((codes, column));
        }
        Ok(GroupPage { columns })
    }
}

#[inline(always)]
fn add_u8_inner(offsets: &[u8; BLOCK], base: u8, stride: u8, groups: &mut [u8; BLOCK]) {
    if stride == 1 {
        for (g, o) in groups.iter_mut().zip(offsets) {
            *g = g.wrapping_add(o.wrapping_add(base));
        }
    } else {
        for (g, o) in groups.iter_mut().zip(offsets) {
            *g = g.wrapping_add(o.wrapping_add(base).wrapping_mul(stride));
        }
    }
}

#[inline(always)]
fn add_u32_inner(offsets: &[u32; BLOCK], base: u32, stride: u32, groups: &mut [u32; BLOCK]) {
    for (g, o) in groups.iter_mut().zip(offsets) {
        *g = g.wrapping_add(o.wrapping_add(base).wrapping_mul(stride));
    }
}

#[inline(always)]
fn max_u32_inner(values: &[u32]) -> u32 {
    values.iter().fold(0, |max, v| max.max(*v))
}

simd_dispatch! { fn max_u32(values: &[u32]) -> u32 = max_u32_inner; }
simd_dispatch! {
    fn add_u8(offsets: &[u8; BLOCK], base: u8, stride: u8, groups: &mut [u8; BLOCK]) = add_u8_inner;
}
simd_dispatch! {
    fn add_u32(offsets: &[u32; BLOCK], base: u32, stride: u32, groups: &mut [u32; BLOCK]) = add_u32_inner;
}

impl GroupPage<'_> {
    /// The group of each row, when there are at most 256 groups. Rows that do not count, and codes
    /// past the dictionary in a damaged file, may give any number.
    pub fn load_u8(&self, block: usize, rows: Rows<'_>, scratch: &mut GroupScratch) {
        let GroupScratch { offsets_8: offsets, offsets_32: wide, groups_8: groups, .. } = scratch;
        groups.fill(0);
        for (page, column) in &self.columns {
            match rows {
                Rows::All if page.width <= 8 => {
                    unpack_to_8(page.packed(block).0, page.width, offsets);
                }
                _ => {
                    load_offsets(page, block, rows, wide);
                    for (o, w) in offsets.iter_mut().zip(wide.iter()) {
                        *o = *w as u8;
                    }
                }
            }
            add_u8(offsets, page.base as u8, column.stride as u8, groups);
        }
    }

    /// The group of each row; those of the first `used` are below `total`.
    ///
    /// # Errors
    /// `Corrupt` when a code is past its dictionary.
    pub fn load_u32(
        &self,
        block: usize,
        rows: Rows<'_>,
        total: usize,
        scratch: &mut GroupScratch,
    ) -> Result<()> {
        let GroupScratch { offsets_32: offsets, groups_32: groups, .. } = scratch;
        groups.fill(0);
        let mut used = BLOCK;
        for (page, column) in &self.columns {
            load_offsets(page, block, rows, offsets);
            add_u32(offsets, page.base, column.stride, groups);
            used = match rows {
                Rows::All => page.packed(block).1,
                Rows::Few(positions) => positions.len(),
            };
        }
        if max_u32(&groups[..used]) as usize >= total {
            return Err(Error::Corrupt("code past its dictionary".into()));
        }
        Ok(())
    }
}

/// Room for the groups of a block.
#[derive(Debug)]
pub struct GroupScratch {
    offsets_8: Box<[u8; BLOCK]>,
    offsets_32: Box<[u32; BLOCK]>,
    pub groups_8: Box<[u8; BLOCK]>,
    pub groups_32: Box<[u32; BLOCK]>,
}

impl Default for GroupScratch {
    fn default() -> Self {
        GroupScratch {
            offsets_8: Box::new([0; BLOCK]),
            offsets_32: Box::new([0; BLOCK]),
            groups_8: Box::new([0; BLOCK]),
            groups_32: Box::new([0; BLOCK]),
        }
    }
}

fn load_offsets(page: &CodesPage<'_>, block: usize, rows: Rows<'_>, out: &mut [u32; BLOCK]) {
    let (packed, _) = page.packed(block);
    match rows {
        Rows::All => unpack_to_32(packed, page.width, out),
        Rows::Few(positions) => {
            unpack_rows(packed, page.width, positions, |slot, offset| out[slot] = offset);
        }
    }
}

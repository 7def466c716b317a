//! Cuts a table into stretches, which are read by themselves and put together in its order.

use std::ops::Range;

use coload_page::bitpack::BLOCK;

/// Fields of a stretch: a few MB of text.
const STRETCH_FIELDS: usize = 512 << 10;

/// Some pages, or some blocks of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Numbers of the pages, which follow each other in the table's order.
    pub pages: Range<usize>,
    /// The blocks of each that are read; those that it does not have are left out.
    pub blocks: Range<usize>,
}

impl Stretch {
    /// What of it is behind some blocks of a page.
    pub fn behind(&self, page: usize, blocks: usize) -> Vec<Stretch> {
        let rest = Stretch {
            pages: page..page + 1,
            blocks: blocks.max(self.blocks.start)..self.blocks.end,
        };
        let later =
            Stretch { pages: self.pages.start.max(page + 1)..self.pages.end, ..self.clone() };
        let rest = self.pages.contains(&page).then_some(rest);
        let has_some = |stretch: &Stretch| !stretch.pages.is_empty() && !stretch.blocks.is_empty();
        rest.into_iter().chain([later]).filter(has_some).collect()
    }
}

/// Cuts pages of so many rows into stretches that take about as long each: small pages together, large ones by their blocks.
pub fn stretches(page_rows: impl Iterator<Item = u32>, columns: usize) -> Vec<Stretch> {
    let rows_max = (STRETCH_FIELDS / columns.max(1)).max(BLOCK);
    let mut stretches: Vec<Stretch> = Vec::new();
    // Rows of the last stretch, as long as it takes more.
    let mut open = None;
    for (page, rows) in page_rows.enumerate() {
        let rows = rows as usize;
        match (open, stretches.last_mut()) {
            (Some(before), Some(last)) if before + rows <= rows_max => {
                last.pages.end = page + 1;
                open = Some(before + rows);
            }
            _ if rows <= rows_max => {
                stretches.push(Stretch { pages: page..page + 1, blocks: 0..usize::MAX });
                open = Some(rows);
            }
            _ => {
                let (blocks, step) = (rows.div_ceil(BLOCK), rows_max / BLOCK);
                for first in (0..blocks).step_by(step) {
                    stretches.push(Stretch { pages: page..page + 1, blocks: first..first + step });
                }
                open = None;
            }
        }
    }
    if stretches.is_empty() {
        stretches.push(Stretch { pages: 0..0, blocks: 0..0 });
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_all_blocks_in_order() {
        for (pages, columns) in [
            (vec![], 1),
            (vec![1], 0),
            (vec![65_536; 3], 16),
            (vec![10, 20, 65_536, 5, 5, 1_024, 1_025, 70], 600),
            (vec![100, 2_000, 0, 40_000], 155),
            (vec![7; 1_000], 100_000),
        ] {
            let found = stretches(pages.iter().copied(), columns);
            let blocks = found.iter().flat_map(|stretch| {
                stretch.pages.clone().flat_map(|page| {
                    let end = (pages[page] as usize).div_ceil(BLOCK).min(stretch.blocks.end);
                    (stretch.blocks.start..end).map(move |block| (page, block))
                })
            });
            let expected = pages.iter().enumerate().flat_map(|(page, rows)| {
                (0..(*rows as usize).div_ceil(BLOCK)).map(move |block| (page, block))
            });
            assert!(blocks.eq(expected.clone()), "{pages:?} {columns}: {found:?}");
            for (at, (page, block)) in expected.clone().enumerate() {
                let behind = found.iter().flat_map(|stretch| stretch.behind(page, block));
                let left = behind.flat_map(|stretch| {
                    stretch.pages.clone().flat_map({
                        let pages = &pages;
                        move |page| {
                            let end =
                                (pages[page] as usize).div_ceil(BLOCK).min(stretch.blocks.end);
                            (stretch.blocks.start..end).map(move |block| (page, block))
                        }
                    })
                });
                assert!(left.eq(expected.clone().skip(at)), "{pages:?} {columns}: {page} {block}");
            }
        }
    }
}

//! What taking columns costs this server, measured while a load runs: acknowledgements tell it.

use std::collections::HashMap;

/// What taking columns costs here.
#[derive(Debug, Default)]
pub struct Costs {
    /// Nanoseconds and rows of plain columns.
    plain: HashMap<u32, (u64, u64)>,
    /// Nanoseconds and bytes of placed ones.
    placed: (u64, u64),
}

impl Costs {
    /// Notes a block: of plain values with so many rows, or of pages with so many bytes on the wire.
    pub fn note(&mut self, column: u32, plain_rows: Option<u64>, wire_bytes: u64, spent_ns: u64) {
        match plain_rows {
            Some(rows) => {
                let cost = self.plain.entry(column).or_default();
                *cost = (cost.0 + spent_ns, cost.1 + rows);
            }
            None => self.placed = (self.placed.0 + spent_ns, self.placed.1 + wire_bytes),
        }
    }

    /// Nanoseconds of plain columns a row, by column, and of placed ones a byte.
    pub fn told(&self) -> (Vec<(u32, f32)>, f32) {
        let a_row =
            |(column, (ns, rows)): (&u32, &(u64, u64))| (*column, *ns as f32 / *rows as f32);
        let mut plain: Vec<(u32, f32)> = self.plain.iter().map(a_row).collect();
        plain.sort_by_key(|(c, _)| *c);
        let (ns, bytes) = self.placed;
        (plain, ns as f32 / bytes.max(1) as f32)
    }
}

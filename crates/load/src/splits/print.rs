//! What tells a plan from others: sums of hashes of its inputs, so that their order does not matter and none is kept.

use coload_input::Met;
use coload_types::bytes::{checksum, put_bytes, put_varint};
use coload_wire::PlanPrint;

use super::{Split, SplitMethod, SplitPart};

/// The inputs that were met so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct InputsPrint(PlanPrint);

impl InputsPrint {
    /// Adds an input.
    pub fn add(&mut self, met: &Met<'_>) {
        let mut name = Vec::with_capacity(met.name.len() + 48);
        put_bytes(&mut name, met.name.as_bytes());
        put_varint(&mut name, met.bytes);
        let print = &mut self.0;
        print.inputs += 1;
        print.bytes = print.bytes.saturating_add(met.bytes);
        print.names = print.names.wrapping_add(checksum(&name));
        // With the name, so that two inputs that change places are noticed.
        put_bytes(&mut name, met.etag.unwrap_or_default().as_bytes());
        name.extend(met.modified_ns.to_le_bytes());
        print.versions = print.versions.wrapping_add(checksum(&name));
    }
}

impl InputsPrint {
    /// The print of the plan that tells by this method who reads what.
    pub fn of_method(self, method: &SplitMethod) -> PlanPrint {
        let mut out = Vec::new();
        match method {
            SplitMethod::Hashed => out.push(0),
            SplitMethod::Explicit(splits) => {
                out.push(1);
                splits.iter().for_each(|split| put_split(&mut out, split));
            }
        }
        PlanPrint { splits: checksum(&out), ..self.0 }
    }
}

fn put_split(out: &mut Vec<u8>, split: &Split) {
    let (kind, range) = match &split.part {
        SplitPart::Whole => (0, 0..0),
        SplitPart::Bytes(range) => (1, range.clone()),
        SplitPart::RowGroups(range) => (2, range.start as u64..range.end as u64),
        SplitPart::Batches(range) => (3, range.start as u64..range.end as u64),
    };
    for number in [kind, split.input as u64, range.start, range.end, split.worker as u64] {
        put_varint(out, number);
    }
}

//! What tells a plan from others: sums of hashes of its inputs, so that their order does not matter and none is kept.

use std::time::SystemTime;

use coload_input::{InputFile, InputSource, Inputs};
use coload_types::bytes::{checksum, put_bytes, put_varint};
use coload_wire::PlanPrint;

use super::{Split, SplitMethod, SplitPart, SplitPlan};

/// The inputs that were met so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct InputsPrint(PlanPrint);

impl InputsPrint {
    /// Adds an input.
    pub fn add(&mut self, input: &InputFile) {
        let bytes = input.bytes().unwrap_or(0);
        let mut name = Vec::with_capacity(input.name.len() + 16);
        put_bytes(&mut name, input.name.as_bytes());
        put_varint(&mut name, bytes);
        let print = &mut self.0;
        print.inputs += 1;
        print.bytes = print.bytes.saturating_add(bytes);
        print.names = print.names.wrapping_add(checksum(&name));
        // With the name, so that two inputs that change places are noticed.
        name.extend(version_of(input));
        print.versions = print.versions.wrapping_add(checksum(&name));
    }
}

/// What tells an input from what had its name before.
fn version_of(input: &InputFile) -> Vec<u8> {
    let mut out = Vec::new();
    match &input.source {
        InputSource::Object(object) => {
            put_bytes(&mut out, object.etag().unwrap_or_default().as_bytes());
            out.extend(object.modified_us().to_le_bytes());
        }
        _ => {
            let modified = input.identity().and_then(|identity| identity.modified);
            let since = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
            out.extend(since.map_or(0, |since| since.as_nanos()).to_le_bytes());
        }
    }
    out
}

/// The print of a plan of these inputs.
pub fn print_plan(inputs: &Inputs, plan: &SplitPlan) -> PlanPrint {
    let mut print = InputsPrint::default();
    inputs.iter().for_each(|input| print.add(&input));
    print.of_method(&plan.method)
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
    };
    for number in [kind, split.input as u64, range.start, range.end, split.worker as u64] {
        put_varint(out, number);
    }
}

//! A share of a load that several workers do: which it is, what all of them have planned, and what this one reads.

use std::ops::Range;

use coload_store::{
    FinishedShare, INPUTS_KEPT_MAX, KeyCounts, LoadId, LoadTarget, ShareOf, ShareSegment,
    SharesAre, SplitSpan,
};
use coload_types::bytes::{ByteReader, checksum, put_varint};
use coload_types::{Error, Result, same_name};

use crate::description::LoadDescription;
use crate::dialect::put_dialect;
use crate::done::{put_keys, read_keys};
use crate::rows::RowSource;

/// Most shares of a load.
pub const SHARES_MAX: u32 = 1 << 16;

/// A share of a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Which share of which load.
    pub of: ShareOf,
    /// What all workers have planned: all shares of a load have the same.
    pub plan: PlanPrint,
    /// What is read of each input of this share, in their order; all of each if it is empty.
    pub parts: Vec<InputPart>,
}

/// What tells a plan from others: the inputs of all workers, in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanPrint {
    /// Inputs of the load.
    pub inputs: u64,
    /// Their bytes, as they are stored.
    pub bytes: u64,
    /// Hash of their names and sizes.
    pub names: u64,
    /// Hash of what tells their versions: ETags, and the times when they were written.
    pub versions: u64,
    /// Hash of who reads what.
    pub splits: u64,
}

/// In the place of [`PlanPrint::splits`] of a load into a cluster: leaves have shares of its rows, not of its inputs.
const SPLITS_OF_CLUSTER: u64 = 0xc105_7e2e_5ba2_ed01;

/// What a share reads of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPart {
    /// Number of the input in the plan.
    pub input: u32,
    /// What is read of it.
    pub is: PartIs,
}

/// Which part of an input it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartIs {
    /// All of it.
    Whole,
    /// The records, or blocks of Avro, that start in these bytes; the first of them is taken to start at `start`.
    Bytes {
        /// Bytes of the split.
        range: Range<u64>,
        /// Where the first record starts that is read.
        start: u64,
    },
    /// These row groups of Parquet, or record batches of Arrow.
    RowGroups(Range<u32>),
}

/// Least bytes of a part.
const PART_BYTES_MIN: usize = 2;

impl Share {
    /// The number of this share and of all, as `--worker` has them.
    pub fn shown(&self) -> String {
        format!("{}/{}", self.of.number, self.of.count)
    }

    /// Appends the share.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.of.load.as_u128().to_le_bytes());
        put_varint(out, self.of.number.into());
        put_varint(out, self.of.count.into());
        let PlanPrint { inputs, bytes, names, versions, splits } = self.plan;
        for number in [inputs, bytes] {
            put_varint(out, number);
        }
        for hash in [names, versions, splits] {
            out.extend(hash.to_le_bytes());
        }
        put_varint(out, self.parts.len() as u64);
        for part in &self.parts {
            put_varint(out, part.input.into());
            match &part.is {
                PartIs::Whole => out.push(0),
                PartIs::Bytes { range, start } => {
                    out.push(1);
                    [range.start, range.end, *start].iter().for_each(|n| put_varint(out, *n));
                }
                PartIs::RowGroups(range) => {
                    out.push(2);
                    put_varint(out, range.start.into());
                    put_varint(out, range.end.into());
                }
            }
        }
    }

    /// Reads what [`Self::put`] wrote, of a load with so many inputs.
    pub(crate) fn read(reader: &mut ByteReader<'_>, inputs: usize) -> Result<Self> {
        let of = ShareOf {
            load: LoadId::from_u128(reader.i128()? as u128),
            number: reader.varint_u32()?,
            count: reader.varint_u32()?,
        };
        if of.count > SHARES_MAX || !(1..=of.count).contains(&of.number) {
            return Err(Error::Invalid(format!(
                "share {} of {} of a load (from 1 to the number of shares, which is {SHARES_MAX} at most)",
                of.number, of.count
            )));
        }
        let plan = PlanPrint {
            inputs: reader.varint()?,
            bytes: reader.varint()?,
            names: reader.u64()?,
            versions: reader.u64()?,
            splits: reader.u64()?,
        };
        let count = reader.count(PART_BYTES_MIN)?;
        if count != 0 && count != inputs {
            return Err(Error::Corrupt(format!("{count} parts of {inputs} inputs of a share")));
        }
        let parts = (0..count).map(|_| read_part(reader)).collect::<Result<_>>()?;
        Ok(Share { of, plan, parts })
    }
}

fn read_part(reader: &mut ByteReader<'_>) -> Result<InputPart> {
    let input = reader.varint_u32()?;
    let is = match reader.u8()? {
        0 => PartIs::Whole,
        1 => {
            let range = reader.varint()?..reader.varint()?;
            PartIs::Bytes { range, start: reader.varint()? }
        }
        2 => PartIs::RowGroups(reader.varint_u32()?..reader.varint_u32()?),
        other => return Err(Error::Corrupt(format!("part {other} of an input"))),
    };
    Ok(InputPart { input, is })
}

/// The share of a load that a leaf of a cluster has, by its place among the leaves of the table.
///
/// The last share is never there: it is the commit, which the map of the cluster has. So no store publishes its own by
/// itself.
pub fn share_of_leaf(load: LoadId, place: usize, leaves: usize) -> ShareOf {
    ShareOf { load, number: place as u32 + 1, count: leaves as u32 + 1 }
}

/// The id of the journal of a share.
pub fn journal_of_share(of: ShareOf) -> LoadId {
    let mut bytes = of.load.as_u128().to_le_bytes().to_vec();
    bytes.extend(of.number.to_le_bytes());
    let (low, high) = (checksum(&bytes), checksum(&[&bytes[..], b"share"].concat()));
    LoadId::from_u128(u128::from(high) << 64 | u128::from(low))
}

impl PlanPrint {
    /// That of a load into the table of a cluster with this id.
    ///
    /// `since` is the version of the map in which shards of the table moved last: rows that are routed by another one belong
    /// elsewhere.
    pub fn of_cluster(table: u64, since: u64) -> Self {
        PlanPrint {
            versions: table,
            names: since,
            splits: SPLITS_OF_CLUSTER,
            ..PlanPrint::default()
        }
    }

    /// The id of the table of a cluster that the load goes into, if it goes into one.
    pub fn cluster_table(&self) -> Option<u64> {
        (self.splits == SPLITS_OF_CLUSTER).then_some(self.versions)
    }

    /// The version of the map by which rows of a load into a cluster are routed.
    pub fn routed_since(&self) -> u64 {
        self.names
    }

    /// In what this plan differs from that of another share, `theirs`.
    pub(crate) fn differences(&self, theirs: &PlanPrint) -> Vec<String> {
        let mut found = Vec::new();
        if self.inputs != theirs.inputs {
            found.push(format!("{} inputs, and {} there", self.inputs, theirs.inputs));
        }
        if self.bytes != theirs.bytes {
            found.push(format!("{} bytes of inputs, and {} there", self.bytes, theirs.bytes));
        }
        if found.is_empty() && self.names != theirs.names {
            found.push("names or sizes of inputs differ".to_owned());
        }
        if found.is_empty() && self.versions != theirs.versions {
            found.push(
                "an input was written since, or is another version (time or ETag)".to_owned(),
            );
        }
        if found.is_empty() && self.splits != theirs.splits {
            found.push(
                "who reads what differs (--explicit-max, flags of the text, or another program)"
                    .to_owned(),
            );
        }
        found
    }
}

/// What a share has once it is complete.
#[derive(Debug, Clone, Copy)]
pub struct ShareCounts {
    /// When it began, microseconds since the epoch.
    pub started_us: i64,
    /// Rows of its segments.
    pub rows: u64,
    /// Records that were set aside.
    pub rejects: u64,
    /// Bytes of inputs that were read.
    pub bytes: u64,
}

impl LoadDescription {
    /// In what this share does not fit another one of the same load.
    pub fn share_differences(&self, begun: &LoadDescription) -> Vec<String> {
        let (Some(share), Some(other)) = (&self.share, &begun.share) else { return Vec::new() };
        let mut found = Vec::new();
        if !same_name(&self.table, &begun.table) {
            found.push(format!("it goes into {}, and that into {}", self.table, begun.table));
        }
        if share.of.count != other.of.count {
            found.push(format!("{} shares, and {} there", share.of.count, other.of.count));
            return found;
        }
        found.extend(share.plan.differences(&other.plan));
        found.extend(self.rows.differences(&begun.rows));
        found.extend(self.other_rows(begun));
        found
    }

    /// Compares this share with one that was begun, if both are of the same load; the load began when its first share did.
    ///
    /// # Errors
    /// `Refused` with what differs.
    pub fn fit_share(&mut self, begun: &LoadDescription) -> Result<()> {
        let (Some(share), Some(other)) = (&self.share, &begun.share) else { return Ok(()) };
        if share.of.load != other.of.load {
            return Ok(());
        }
        let found = self.share_differences(begun);
        if !found.is_empty() {
            return Err(Error::Refused(format!(
                "share {} of load {} does not fit share {}, which was begun before: {} (give all shares the same inputs and \
                 flags, or drop the load with coload loads --abort {1})",
                share.shown(),
                share.of.load,
                other.shown(),
                found.join("; ")
            )));
        }
        if let (Some(ours), Some(theirs)) = (&mut self.began_us, begun.began_us) {
            *ours = theirs.min(*ours);
        }
        Ok(())
    }

    /// Whether this is the same attempt at a share as `begun`: it reads the same, in the same chunks.
    pub fn is_same_share(&self, begun: &LoadDescription) -> bool {
        self.share == begun.share
            && self.inputs == begun.inputs
            && self.chunk_bytes == begun.chunk_bytes
            && self.fragments_per_partition == begun.fragments_per_partition
            && self.dictionaries == begun.dictionaries
            && self.rows.by_input == begun.rows.by_input
    }

    /// A hash of what all shares of a load have in common.
    fn plan_hash(&self, share: &Share) -> u64 {
        let mut bytes = Vec::new();
        let none = Share { of: ShareOf { number: 1, ..share.of }, parts: Vec::new(), ..*share };
        none.put(&mut bytes);
        put_dialect(&mut bytes, &self.dialect);
        // Which inputs a share has is its own.
        RowSource { by_input: None, ..self.rows.clone() }.put(&mut bytes);
        bytes.extend(format!("{:?}", self.max_rejects).into_bytes());
        checksum(&bytes)
    }

    /// What is kept of this share when it is complete; `end` says where the last record of an input ends, by its number
    /// in the share.
    ///
    /// # Errors
    /// `Corrupt` when it is no share.
    pub fn finished_share(
        &self,
        target: LoadTarget,
        counts: ShareCounts,
        segments: Vec<ShareSegment>,
        end: impl Fn(usize) -> u64,
    ) -> Result<FinishedShare> {
        let Some(share) = &self.share else {
            return Err(Error::Corrupt("a load that is no share".into()));
        };
        let begins = |number: &usize| match share.parts.get(*number).map(|part| &part.is) {
            None | Some(PartIs::Whole) => true,
            Some(PartIs::Bytes { range, .. }) => range.start == 0,
            Some(PartIs::RowGroups(range)) => range.start == 0,
        };
        let begun = || (0..self.inputs.len()).filter(begins);
        let span = |(number, part): (usize, &InputPart)| match &part.is {
            PartIs::Bytes { range, start } => {
                let (from, to, end) = (range.start, range.end, end(number).max(*start));
                Some(SplitSpan { input: part.input, from, to, start: *start, end })
            }
            _ => None,
        };
        let ShareCounts { started_us, rows, rejects, bytes } = counts;
        Ok(FinishedShare {
            of: share.of,
            plan: self.plan_hash(share),
            on_conflict: self.on_conflict,
            delete_where: self.delete_where(&target.schema)?,
            target,
            started_us,
            rows,
            rejects,
            bytes,
            input_count: begun().count() as u64,
            inputs: begun().take(INPUTS_KEPT_MAX).map(|n| self.inputs.names().get(n)).collect(),
            segments,
            spans: share.parts.iter().enumerate().filter_map(span).collect(),
            gone: None,
        })
    }
}

/// What a server, or a store, says of the shares of a load when one of them has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharesDone {
    /// Which share it was.
    pub of: ShareOf,
    /// Numbers of the shares that are not complete; none when the load is published.
    pub missing: Vec<u32>,
    /// A share that has to be done again, as it began within a record.
    pub misread: Option<u32>,
    /// Rows of all shares, once they are published.
    pub rows: u64,
    /// Records of all shares that were set aside, once they are published.
    pub rejects: u64,
    /// What became of the rows by their keys, where the shares said what is to, once they are published.
    pub keys: Option<KeyCounts>,
}

impl SharesDone {
    /// What is said to a share of what became of all of them.
    pub fn new(of: ShareOf, are: &SharesAre) -> Self {
        let none =
            SharesDone { of, missing: Vec::new(), misread: None, rows: 0, rejects: 0, keys: None };
        match are {
            SharesAre::Incomplete(complete) => {
                let missing =
                    (1..=of.count).filter(|number| complete.binary_search(number).is_err());
                SharesDone { missing: missing.collect(), ..none }
            }
            SharesAre::Misread(number) => {
                SharesDone { missing: vec![*number], misread: Some(*number), ..none }
            }
            SharesAre::Published(all) => {
                SharesDone { rows: all.rows, rejects: all.rejects, keys: all.keys, ..none }
            }
            SharesAre::Known(load) => SharesDone { rows: load.rows, rejects: load.rejects, ..none },
        }
    }

    /// Appends it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.of.load.as_u128().to_le_bytes());
        for number in [self.of.number, self.of.count, self.misread.unwrap_or(0)] {
            put_varint(out, number.into());
        }
        put_varint(out, self.rows);
        put_varint(out, self.rejects);
        put_varint(out, self.missing.len() as u64);
        self.missing.iter().for_each(|number| put_varint(out, u64::from(*number)));
        out.push(u8::from(self.keys.is_some()));
        self.keys.iter().for_each(|keys| put_keys(out, *keys));
    }

    /// Reads what [`Self::put`] wrote.
    pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let load = LoadId::from_u128(reader.i128()? as u128);
        let of = ShareOf { load, number: reader.varint_u32()?, count: reader.varint_u32()? };
        let misread = Some(reader.varint_u32()?).filter(|number| *number > 0);
        let (rows, rejects) = (reader.varint()?, reader.varint()?);
        let missing = (0..reader.count(1)?).map(|_| reader.varint_u32()).collect::<Result<_>>()?;
        let keys = match reader.u8()? {
            0 => None,
            _ => Some(read_keys(reader)?),
        };
        Ok(SharesDone { of, missing, misread, rows, rejects, keys })
    }
}

/// Numbers as a list with ranges: `1, 4-6`.
pub fn show_numbers(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown = runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_share_comes_back_and_one_out_of_range_is_refused() {
        let of = ShareOf { load: LoadId::from_u128(9), number: 3, count: 8 };
        let part = |input, is| InputPart { input, is };
        let parts = vec![
            part(0, PartIs::Whole),
            part(7, PartIs::Bytes { range: 4..9, start: 5 }),
            part(8, PartIs::RowGroups(1..3)),
        ];
        let plan = PlanPrint { inputs: 9, bytes: 900, names: 1, versions: 2, splits: 3 };
        let share = Share { of, plan, parts };
        let mut bytes = Vec::new();
        share.put(&mut bytes);
        assert_eq!(Share::read(&mut ByteReader::new(&bytes), 3).unwrap(), share);
        assert!(Share::read(&mut ByteReader::new(&bytes), 2).is_err());
        for cut in 0..bytes.len() {
            assert!(Share::read(&mut ByteReader::new(&bytes[..cut]), 3).is_err());
        }
        for number in [0, 9] {
            let mut bytes = Vec::new();
            Share { of: ShareOf { number, ..of }, ..share.clone() }.put(&mut bytes);
            assert!(Share::read(&mut ByteReader::new(&bytes), 3).is_err());
        }
        let none = SharesDone {
            of,
            missing: vec![1, 5],
            misread: Some(4),
            rows: 9,
            rejects: 1,
            keys: None,
        };
        let keys = KeyCounts { added: 7, twice: 2, ..KeyCounts::default() };
        for done in [none.clone(), SharesDone { keys: Some(keys), ..none }] {
            let mut bytes = Vec::new();
            done.put(&mut bytes);
            assert_eq!(SharesDone::read(&mut ByteReader::new(&bytes)).unwrap(), done);
        }
    }

    #[test]
    fn it_is_told_in_what_plans_differ() {
        let plan = PlanPrint { inputs: 9, bytes: 900, names: 1, versions: 2, splits: 3 };
        assert!(plan.differences(&plan).is_empty());
        let told = |other: PlanPrint| plan.differences(&other).join("; ");
        assert!(told(PlanPrint { inputs: 8, ..plan }).contains("9 inputs, and 8"));
        assert!(told(PlanPrint { names: 8, ..plan }).contains("names"));
        assert!(told(PlanPrint { versions: 8, ..plan }).contains("ETag"));
        assert!(told(PlanPrint { splits: 8, ..plan }).contains("who reads what"));
        assert_eq!(show_numbers(&[1, 4, 5, 6, 9]), "1, 4-6, 9");
    }
}

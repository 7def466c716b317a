//! What client and server of a load say to each other, as bytes of link messages.
//!
//! ```text
//!   client                                server
//!   HELLO description             ->
//!                                 <-      WELCOME what is acknowledged | DONE it is published already
//!   JOIN on further connections   ->
//!   BLOCK column of a fragment or
//!         of a partition          ->
//!   TEXT_FRAGMENT   text of a fragment      ->
//!                                 <-      PARSED it has those rows, or is handed back
//!   SEAL  rows, blocks, account   ->
//!                                 <-      SEALED the partition is durable
//!   RANGE, of an attempt that met what its types do not hold
//!                                 <-      RANGES of the values so far
//!   WIDEN columns of wider types  ->
//!                                 <-      WIDENED it is durable: the next attempt goes on with them
//!   BLOCKs and SEALs of texts, for the partitions before, if a column became text
//!                                 <-      SEALED
//!   FINISH the account            ->
//!                                 <-      CONFLICTS rows that are left out, and are to be rejects
//!   SETTLE these were told        ->
//!                                 <-      DONE version, costs
//!
//!   instead of blocks, for `pipe` and `seq`:
//!   CHUNK bytes of an input       ->
//!   CHUNKS of several small ones  ->
//!                                 <-      STORED so many bytes are durable
//!   REJECTS from a byte on        ->      after DONE
//!                                 <-      REJECTS_PIECE some bytes of the file of rejects
//! ```
//!
//! A server that is a node of a cluster answers the first HELLO with its map; then the client begins a share of the load at each leaf:
//!
//! ```text
//!   HELLO description             ->
//!                                 <-      MAP
//!   at each leaf: HELLO share .. FINISH, as above; before FINISH, of a statement that changes rows:
//!     GONE places of the rows that go
//!                                 <-      DONE the share is prepared
//!   COMMIT load, at one node      ->
//!                                 <-      COMMITTED version
//!   LOOK at each leaf [is a load under way that holds a table?]    ->
//!                                 <-      LOOKED the leaf has published its share
//! ```
//!
//! Numbers are varints unless said otherwise. Decoding takes hostile bytes: counts are checked against the
//! bytes that are there, and every list has a limit.

mod account;
mod block;
mod commit;
mod conflicts;
mod derivation;
mod description;
mod dialect;
mod done;
mod fields;
mod legs;
mod lists;
mod partition_path;
mod prints;
mod reject_limit;
mod rejects;
mod rows;
mod settle;
mod share;
mod text_fragment;

pub use account::{InputShare, PartitionAccount, RowsAre, Seal};
pub use block::{Block, BlockContent, FRAGMENT_ROWS_MAX};
pub use commit::{Commit, Committed, Look, Looked};
pub use conflicts::{DeleteText, parse_delete_where};
pub use derivation::{ColumnFrom, Derivation, load_time};
pub use description::{
    Again, ColumnsAre, LoadDescription, PROGRAM_AT_SERVER, SHARE_AT_SERVER, Work,
};
pub use done::{Done, Finish, Join, ServerLoad, Welcome};
pub use fields::{FieldMap, FieldsByInput};
pub use legs::{Ranges, Widen};
pub use lists::{LoadStage, LoadStatus, ShareStatus, read_statuses, write_statuses};
pub use partition_path::{partition_value, partition_values};
pub use prints::{InputPrint, PrintList, Prints};
pub use reject_limit::RejectLimit;
pub use rejects::Rejects;
pub use rows::{RowSource, RowSql};
pub use settle::{Conflicts, RowIs};
pub use share::{
    InputPart, PartIs, PlanPrint, SHARES_MAX, Share, ShareCounts, SharesDone, journal_of_share,
    share_of_leaf, show_numbers,
};
pub use text_fragment::{Parsed, TEXT_HEAD_BYTES, TextFragment, TextIs, put_text_head};

use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

/// Client: begins a load.
pub const HELLO: u8 = 16;
/// Client: one more connection of a load.
pub const JOIN: u8 = 17;
/// Client: a column of a fragment or partition.
pub const BLOCK: u8 = 18;
/// Client: a partition is complete.
pub const SEAL: u8 = 19;
/// Client: bytes of an input.
pub const CHUNK: u8 = 20;
/// Client: the load is complete.
pub const FINISH: u8 = 21;
/// Client: which loads are there?
pub const LIST: u8 = 22;
/// Client: drop a load.
pub const ABORT: u8 = 23;
/// Client: the columns of a table?
pub const DESCRIBE: u8 = 24;
/// Client: which values are there?
pub const RANGE: u8 = 25;
/// Client: the columns have wider types from now on.
pub const WIDEN: u8 = 26;
/// Client: the text of a fragment.
pub const TEXT_FRAGMENT: u8 = 27;
/// Client, after `DONE`: the file of rejects, from a byte on?
pub const REJECTS: u8 = 28;
/// Client: bytes of several inputs.
pub const CHUNKS: u8 = 29;
/// Client: the records of rows that are left out were told.
pub const SETTLE: u8 = 30;
/// Server: go on from here.
pub const WELCOME: u8 = 32;
/// Server: a partition is durable.
pub const SEALED: u8 = 33;
/// Server: the load is published.
pub const DONE: u8 = 34;
/// Server: answer to `LIST` and `ABORT`.
pub const LOADS: u8 = 35;
/// Server: answer to `DESCRIBE`: a CREATE TABLE, or nothing.
pub const TABLE: u8 = 36;
/// Server: bytes of inputs that are durable.
pub const STORED: u8 = 37;
/// Server: answer to `RANGE`.
pub const RANGES: u8 = 38;
/// Server: the wider types are durable.
pub const WIDENED: u8 = 39;
/// Server: what became of a text.
pub const PARSED: u8 = 40;

/// Server: rows that are left out for their keys, whose records are to be told before the load is published.
pub const CONFLICTS: u8 = 42;
/// Server: some bytes of the file of rejects; none at its end.
pub const REJECTS_PIECE: u8 = 41;

/// Client, of a load into a cluster: all leaves have prepared it, commit it.
pub const COMMIT: u8 = 48;
/// Client: look at the map of the cluster, and do what it says; perhaps whether a load is under way.
pub const LOOK: u8 = 49;
/// Client: the map of the cluster?
pub const ASK_MAP: u8 = 50;
/// Client, of a share of a load into a cluster: rows of the table that go when its rows come.
pub const GONE: u8 = 51;
/// Server: answer to `COMMIT`.
pub const COMMITTED: u8 = 56;
/// Server: answer to `LOOK`: the version of the map that is done.
pub const LOOKED: u8 = 57;
/// Server: the map of the cluster; also the answer to a `HELLO` of a load that is for a cluster.
pub const MAP: u8 = 58;

/// Smallest chunk; chunks this small serve tests only.
pub const CHUNK_BYTES_MIN: usize = 16;
/// Largest chunk; positions in a window are 32 bits.
pub const CHUNK_BYTES_MAX: usize = 1 << 30;

/// Most fragments of a partition.
pub const FRAGMENTS_MAX: usize = 10_000;
/// Most partitions of a load.
pub const PARTITIONS_MAX: u32 = 1 << 24;
/// Partition `REREAD_FROM + n` holds the text of partition n: of columns that became text, and nothing else.
pub const REREAD_FROM: u32 = PARTITIONS_MAX;

/// Bytes of an input that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Number of the input.
    pub file: u32,
    /// Place of the first byte in the input as it is stored.
    pub offset: u64,
    /// Bytes of the input as they are stored.
    pub bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// File and offset, then the bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 16);
        put_varint(&mut out, u64::from(self.file));
        put_varint(&mut out, self.offset);
        out.extend_from_slice(self.bytes);
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is cut.
    pub fn decode(bytes: &'a [u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let (file, offset) = (reader.varint_u32()?, reader.varint()?);
        Ok(Chunk { file, offset, bytes: reader.take(reader.remaining())? })
    }

    /// Appends file, offset, length and bytes: one of several in a message.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.file));
        put_varint(out, self.offset);
        put_bytes(out, self.bytes);
    }

    /// Reads what [`Self::put`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is cut.
    pub fn read(reader: &mut ByteReader<'a>) -> Result<Self> {
        let (file, offset) = (reader.varint_u32()?, reader.varint()?);
        Ok(Chunk { file, offset, bytes: reader.bytes()? })
    }
}

/// Text of a message.
fn read_text(reader: &mut ByteReader<'_>) -> Result<String> {
    String::from_utf8(reader.bytes()?.to_vec())
        .map_err(|_| Error::Corrupt("a text that is not UTF-8".into()))
}

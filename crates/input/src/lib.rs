//! Inputs as text: files, globs, objects, members of archives and streams, compressed or not, in any encoding.
//!
//! Invariant: what comes out is the text in the order of the inputs, whatever the number of threads;
//! text that a damaged input does not have is an error, never less text.

mod archive;
mod codec;
mod compression;
mod decoder;
mod disk;
mod encoding;
mod inflate;
mod inputs;
mod lz4;
mod names;
mod open;
mod queue;
mod raw;
mod sample;
mod windows;

pub use coload_places::{ObjectRef, PlaceOptions, Wanted};

pub use archive::{ArchiveAt, Check, Member, SheetArea, SheetChoice, Stored};
pub use coload_sheets::{Area, ERRORS as CELL_ERRORS};
pub use compression::Compression;
pub use decoder::{Decoder, Filled};
pub use disk::FileIdentity;
pub use encoding::{
    ByteOrder, DosPage, Encoding, End, MARK_BYTES_MAX, Said, TextEncoding, ToUtf8, convert_all,
    detect_encoding,
};
pub use inputs::{
    InputFile, InputSource, Inputs, Keep, Met, STDIN, expand_inputs, expand_inputs_where,
    expand_inputs_with,
};
pub use names::Names;
pub use open::{TextInput, Waiting, open_stream};
pub use queue::{BLOCK_BYTES, Block, Job, Taken, TextQueue, Who};
pub use raw::{Raw, RawFile, read_error};
pub use sample::{sample_head, sample_input};
pub use windows::Windows;

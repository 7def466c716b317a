//! Decoders of one member, frame or stream at a time, fed with slices.
//!
//! Invariant: no I/O. A decoder takes what it can of the input and says how far it came.

use crate::compression::Compression;
use crate::inflate::{Inflate, Inflated};
use crate::lz4::Lz4;

/// Most memory that an xz stream may ask for; `xz -9` asks for 65 MiB.
const XZ_MEMORY_BYTES_MAX: u64 = 256 << 20;
/// Largest window of a Zstandard frame, 128 MiB as the tool's own limit.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;
/// What the library says of a window over the limit.
const ZSTD_WINDOW_ERROR: &str = "Frame requires too much memory for decoding";
/// A window that is always allowed: every decoder has to take frames of 8 MiB (RFC 8878, 3.1.1.1.2).
const ZSTD_WINDOW_BYTES_MIN: usize = 8 << 20;
/// What a decoder of xz may always have: `xz -6`, as it is by default, asks for 9 MiB.
const XZ_MEMORY_BYTES_MIN: u64 = 10 << 20;
/// Bytes of a gzip member after its text: checksum and length.
const TRAILER_BYTES: usize = 8;
/// Longest header of a gzip member; name and comment may have any length.
pub const HEADER_BYTES_MAX: usize = 1 << 20;

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Bytes taken of the input.
    pub consumed: usize,
    /// Bytes put into the output.
    pub produced: usize,
    /// What the codec has come to.
    pub next: Next,
}

/// What a decoder needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// To be called again; with more input if nothing was taken and nothing made.
    More,
    /// A new start: the member has ended.
    MemberEnd,
}

/// A decoder that is given input and room step by step, and does no I/O.
pub trait Codec: Send {
    /// Decodes some of `input` into `out`.
    ///
    /// # Errors
    /// What is wrong with the input.
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String>;

    /// Whether the member that starts with `input` says that its text has at most `text_bytes`, and goes on after the
    /// input.
    fn is_cut_short(&self, _input: &[u8], _text_bytes: usize) -> bool {
        false
    }

    /// Refuses members that need a window or dictionary of more bytes.
    ///
    /// # Errors
    /// When the library cannot.
    fn limit_window(&mut self, _bytes: usize) -> Result<(), String> {
        Ok(())
    }

    /// Bytes of the window or dictionary that it has.
    fn window_bytes(&self) -> usize {
        0
    }

    /// Whether the last step failed because a window is over the limit: the data are not damaged.
    fn lacks_window(&self) -> bool {
        false
    }

    /// Gets ready for the next member.
    ///
    /// # Errors
    /// When the library cannot.
    fn restart(&mut self) -> Result<(), String>;
}

/// The decoder of a format; `None` for formats that have no decoder of members.
///
/// # Errors
/// When the library has no memory.
pub fn codec(format: Compression) -> Result<Option<Box<dyn Codec>>, String> {
    Ok(match format {
        Compression::Gzip => Some(Box::new(Gzip::new())),
        Compression::Zstd => Some(Box::new(Zstd::new()?)),
        Compression::Bzip2 => Some(Box::new(Bzip2(bzip2::Decompress::new(false)))),
        Compression::Xz => Some(Box::new(Xz::new(XZ_MEMORY_BYTES_MAX)?)),
        Compression::Deflate => Some(Box::new(Deflate(Inflate::new()))),
        Compression::Lz4 => Some(Box::new(Lz4::new())),
        Compression::Snappy => None,
    })
}

/// Where a gzip decoder is in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Body,
    Trailer,
}

/// gzip (RFC 1952): header, deflate, CRC-32 and length, for each member.
struct Gzip {
    part: Part,
    inflate: Inflate,
    crc: libdeflater::Crc,
    /// Bytes of text, modulo 2^32.
    length: u32,
}

impl Gzip {
    fn new() -> Self {
        Gzip {
            part: Part::Header,
            inflate: Inflate::new(),
            crc: libdeflater::Crc::new(),
            length: 0,
        }
    }

    fn header(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(length) = header_bytes(input)? else {
            return match input.len() > HEADER_BYTES_MAX {
                true => Err(format!("the header of a member is over {HEADER_BYTES_MAX} bytes")),
                false => Ok(Step { consumed: 0, produced: 0, next: Next::More }),
            };
        };
        self.part = Part::Body;
        Ok(Step { consumed: length, produced: 0, next: Next::More })
    }

    fn body(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        let step = inflate(&mut self.inflate, input, out)?;
        let text = &out[..step.produced];
        self.crc.update(text);
        self.length = self.length.wrapping_add(text.len() as u32);
        if step.next == Next::MemberEnd {
            self.part = Part::Trailer;
        }
        Ok(Step { next: Next::More, ..step })
    }

    fn trailer(&mut self, input: &[u8]) -> Result<Step, String> {
        let Some(trailer) = input.first_chunk::<TRAILER_BYTES>() else {
            return Ok(Step { consumed: 0, produced: 0, next: Next::More });
        };
        let [a, b, c, d, e, f, g, h] = *trailer;
        let (crc, length) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if crc != self.crc.sum() {
            return Err("the checksum of a member is wrong".to_owned());
        }
        if length != self.length {
            return Err("the length of a member is wrong".to_owned());
        }
        Ok(Step { consumed: TRAILER_BYTES, produced: 0, next: Next::MemberEnd })
    }
}

impl Codec for Gzip {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        match self.part {
            Part::Header => self.header(input),
            Part::Body => self.body(input, out),
            Part::Trailer => self.trailer(input),
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        self.part = Part::Header;
        self.inflate.reset();
        (self.crc, self.length) = (libdeflater::Crc::new(), 0);
        Ok(())
    }
}

fn inflate(decoder: &mut Inflate, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
    let done = decoder.step(input, out);
    let Inflated { consumed, produced, ended } =
        done.map_err(|text| format!("the deflate data are damaged: {text}"))?;
    let next = if ended { Next::MemberEnd } else { Next::More };
    Ok(Step { consumed, produced, next })
}

/// Bytes of a gzip header; `None` when it goes on after the input.
fn header_bytes(input: &[u8]) -> Result<Option<usize>, String> {
    let Some(fixed) = input.first_chunk::<10>() else { return Ok(None) };
    let flags = fixed[3];
    if !Compression::Gzip.starts(input) {
        return Err("no member starts here".to_owned());
    }
    let mut at = 10;
    if flags & 4 != 0 {
        let Some([low, high]) = input.get(at..at + 2) else { return Ok(None) };
        at += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    // Name and comment end with a NUL.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let Some(text) = input.get(at..) else { return Ok(None) };
            let Some(end) = memchr::memchr(0, text) else { return Ok(None) };
            at += end + 1;
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    Ok((input.len() >= at).then_some(at))
}

/// Deflate without a frame, as zip files have it.
struct Deflate(Inflate);

impl Codec for Deflate {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        inflate(&mut self.0, input, out)
    }

    fn restart(&mut self) -> Result<(), String> {
        self.0.reset();
        Ok(())
    }
}

/// Zstandard (RFC 8878), frame by frame.
struct Zstd {
    context: zstd_safe::DCtx<'static>,
    window_log_max: u32,
    lacks_window: bool,
}

impl Zstd {
    fn new() -> Result<Self, String> {
        let context = zstd_safe::DCtx::try_create().ok_or("no memory for a decoder")?;
        let mut zstd = Zstd { context, window_log_max: 0, lacks_window: false };
        zstd.set_window_log(ZSTD_WINDOW_LOG_MAX)?;
        Ok(zstd)
    }

    fn set_window_log(&mut self, log: u32) -> Result<(), String> {
        let limit = zstd_safe::DParameter::WindowLogMax(log);
        self.context.set_parameter(limit).map_err(zstd_error)?;
        self.window_log_max = log;
        Ok(())
    }
}

fn zstd_error(code: usize) -> String {
    zstd_safe::get_error_name(code).to_owned()
}

impl Codec for Zstd {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        let mut from = zstd_safe::InBuffer::around(input);
        let mut to = zstd_safe::OutBuffer::around(out);
        let left = self.context.decompress_stream(&mut to, &mut from).map_err(|code| {
            let text = zstd_error(code);
            self.lacks_window = text == ZSTD_WINDOW_ERROR;
            match self.lacks_window {
                true => format!(
                    "its window is over {} bytes (try a larger --memory, or decompress it into a pipe: zstd \
                     -dc --long=31 FILE | coload load -)",
                    1_u64 << self.window_log_max
                ),
                false => text,
            }
        })?;
        let next = if left == 0 { Next::MemberEnd } else { Next::More };
        Ok(Step { consumed: from.pos(), produced: to.pos(), next })
    }

    fn is_cut_short(&self, input: &[u8], text_bytes: usize) -> bool {
        let told = zstd_safe::get_frame_content_size(input).ok().flatten();
        told.is_some_and(|bytes| bytes <= text_bytes as u64)
            && zstd_safe::find_frame_compressed_size(input).is_err()
    }

    fn limit_window(&mut self, bytes: usize) -> Result<(), String> {
        let log = bytes.max(ZSTD_WINDOW_BYTES_MIN).ilog2();
        self.set_window_log(log.min(ZSTD_WINDOW_LOG_MAX))
    }

    fn window_bytes(&self) -> usize {
        self.context.sizeof()
    }

    fn lacks_window(&self) -> bool {
        self.lacks_window
    }

    fn restart(&mut self) -> Result<(), String> {
        let only_session = zstd_safe::ResetDirective::SessionOnly;
        self.context.reset(only_session).map(|_| ()).map_err(zstd_error)
    }
}

struct Bzip2(bzip2::Decompress);

impl Codec for Bzip2 {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        let (read, written) = (self.0.total_in(), self.0.total_out());
        let status = self.0.decompress(input, out).map_err(|e| format!("damaged ({e})"))?;
        Ok(Step {
            consumed: (self.0.total_in() - read) as usize,
            produced: (self.0.total_out() - written) as usize,
            next: match status {
                bzip2::Status::StreamEnd => Next::MemberEnd,
                _ => Next::More,
            },
        })
    }

    fn restart(&mut self) -> Result<(), String> {
        self.0 = bzip2::Decompress::new(false);
        Ok(())
    }
}

/// xz. How much its dictionary takes is found by raising what it may take.
struct Xz {
    stream: liblzma::stream::Stream,
    memory: u64,
    memory_max: u64,
    lacks_window: bool,
}

impl Xz {
    fn new(memory_max: u64) -> Result<Self, String> {
        let stream = new_xz(XZ_MEMORY_BYTES_MIN)?;
        Ok(Xz { stream, memory: XZ_MEMORY_BYTES_MIN, memory_max, lacks_window: false })
    }

    /// Lets it take as much as it needs, if it may: twice as much again and again.
    fn raise(&mut self) -> Result<(), String> {
        use liblzma::stream::Error;
        while self.memory < self.memory_max {
            self.memory = (self.memory * 2).min(self.memory_max);
            match self.stream.set_memlimit(self.memory) {
                Err(Error::MemLimit) => {}
                other => return other.map_err(|e| e.to_string()),
            }
        }
        self.lacks_window = true;
        Err(format!(
            "its dictionary needs over {} bytes of memory (try a larger --memory, or decompress it into a pipe: \
             xz -dc FILE | coload load -)",
            self.memory_max
        ))
    }
}

fn new_xz(memory: u64) -> Result<liblzma::stream::Stream, String> {
    liblzma::stream::Stream::new_stream_decoder(memory, 0).map_err(|e| e.to_string())
}

impl Codec for Xz {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Result<Step, String> {
        use liblzma::stream::{Action, Error, Status};
        let (read, written) = (self.stream.total_in(), self.stream.total_out());
        let status = match self.stream.process(input, out, Action::Run) {
            Ok(status) => status,
            Err(Error::MemLimit) => {
                self.raise()?;
                // What it took of the input is taken; the rest comes again.
                Status::Ok
            }
            Err(e) => return Err(format!("damaged ({e})")),
        };
        Ok(Step {
            consumed: (self.stream.total_in() - read) as usize,
            produced: (self.stream.total_out() - written) as usize,
            next: if status == Status::StreamEnd { Next::MemberEnd } else { Next::More },
        })
    }

    fn limit_window(&mut self, bytes: usize) -> Result<(), String> {
        self.memory_max = (bytes as u64).clamp(XZ_MEMORY_BYTES_MIN, XZ_MEMORY_BYTES_MAX);
        Ok(())
    }

    fn window_bytes(&self) -> usize {
        self.memory as usize
    }

    fn lacks_window(&self) -> bool {
        self.lacks_window
    }

    fn restart(&mut self) -> Result<(), String> {
        self.stream = new_xz(self.memory)?;
        Ok(())
    }
}

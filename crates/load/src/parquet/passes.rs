//! Passes of a load that starts again when a column becomes wider.
//!
//! Files are read again. Of a stream whose columns were inferred, what was read is kept ([`Spool`]); the next pass reads
//! that, and goes on with the stream where the one before left it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex};

use coload_threads::lock;
use coload_types::{Error, Result};

use crate::opened::OpenedStream;
use crate::request::LoadRequest;
use crate::spool::Spool;
use crate::widen::{Way, Widened};

/// The passes of a load.
pub struct Passes {
    pass: usize,
    stream: Option<Kept>,
}

/// A stream whose text is kept.
struct Kept {
    name: String,
    spool: Arc<Spool>,
    rest: Rest,
}

impl Passes {
    /// The passes of a load; what a stream gives goes into a file that is made at `scratch`, and has no name then.
    ///
    /// # Errors
    /// `Unavailable` when that cannot be made, `Invalid` when the stream cannot be opened.
    pub fn new(request: &LoadRequest, scratch: &Path) -> Result<Self> {
        let typed = request.read_schema().columns().iter().any(|c| !c.data_type.is_text());
        let once = request.inputs.read_once().filter(|_| request.inputs.len() == 1);
        let stream = match once {
            Some(input) if request.inferred.is_some() && typed => {
                let opened = match &request.stream {
                    Some(stream) => Some(stream.clone()),
                    None => OpenedStream::open(&input)?,
                };
                let rest = opened.map(|opened| opened.take_bytes()).transpose()?;
                let kept = |rest| -> Result<Kept> {
                    let spool = Spool::create(scratch)?;
                    Ok(Kept { name: input.name.clone(), spool, rest: Rest::new(rest) })
                };
                rest.map(kept).transpose()?
            }
            _ => None,
        };
        Ok(Passes { pass: 0, stream })
    }

    /// Begins the next pass.
    ///
    /// # Errors
    /// `Input` when the text of a stream was too much to be kept.
    pub fn begin(&mut self, request: &mut LoadRequest, widened: &[Widened]) -> Result<Way> {
        let pass = self.pass;
        self.pass += 1;
        let Some(Kept { name, spool, rest }) = &self.stream else {
            return Ok(Way::StartAgain { pass });
        };
        let kept = match (spool.reader(), widened.last()) {
            (Some(kept), _) => kept,
            (None, Some(Widened { column, from, place, value, .. })) => {
                return Err(Error::Input {
                    place: Box::new(place.clone()),
                    text: format!(
                        "column {column} was inferred as {from}, which \"{}\" is not; of a stream so long the text \
                         before is not kept (give --columns or --all-text, or load a file)",
                        String::from_utf8_lossy(&value[..value.len().min(40)])
                    ),
                });
            }
            (None, None) => {
                return Err(Error::Unavailable("the text of the stream was not kept".into()));
            }
        };
        let reader = kept.chain(spool.keep(Box::new(rest.clone())));
        request.stream = Some(OpenedStream::new(name.clone(), Box::new(reader)));
        // A stream tells of a field that does not fit only where the pass may end before it.
        Ok(Way::GoOn)
    }
}

/// The bytes that nobody has read yet.
#[derive(Clone)]
struct Rest(Arc<Mutex<Box<dyn Read + Send>>>);

impl Rest {
    fn new(reader: Box<dyn Read + Send>) -> Self {
        Rest(Arc::new(Mutex::new(reader)))
    }
}

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        lock(&self.0).read(buffer)
    }
}

//! A space as an option names it.

use std::fmt::{self, Debug};
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::disk::DiskKind;
use crate::dram::DramKind;
use crate::emulated::EmulatedKind;
use crate::map::MapKind;
use crate::pmem::PmemKind;
use crate::space::Space;

/// A kind of space.
pub(crate) trait Kind: Debug + Sync {
    /// What its options begin with.
    fn name(&self) -> &'static str;

    /// How an option of it is written.
    fn form(&self) -> &'static str;

    /// Checks what stands behind its name.
    ///
    /// # Errors
    /// `Invalid` with what it needs.
    fn check(&self, argument: Option<&str>) -> Result<()>;

    /// Opens it.
    ///
    /// # Errors
    /// `Invalid` or `Unavailable` when it is not there.
    fn open(&self, given: &Opening<'_>) -> Result<Arc<dyn Space>>;
}

/// What a kind opens a space by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    /// The space as messages name it.
    pub name: &'a str,
    /// What stands behind the name of the kind.
    pub argument: &'a str,
    /// Most bytes, if that was said.
    pub size: Option<u64>,
    /// Most bytes of memory that the load may use.
    pub memory: u64,
}

/// All kinds there are.
const KINDS: [&dyn Kind; 5] = [&DramKind, &MapKind, &PmemKind, &DiskKind, &EmulatedKind];

/// What stands before the size.
const SIZE: &str = ",size=";

/// A space as an option names it: `disk:/mnt/x,size=20GiB`.
#[derive(Clone)]
pub struct SpaceSpec {
    kind: &'static dyn Kind,
    name: String,
    argument: String,
    size: Option<u64>,
}

impl SpaceSpec {
    /// Reads an option; sizes are read by `parse_size`.
    ///
    /// # Errors
    /// `Invalid` with what is wrong.
    pub fn parse(
        text: &str,
        parse_size: impl Fn(&str) -> std::result::Result<usize, String>,
    ) -> Result<Self> {
        let wrong = |what: &str| {
            let forms: Vec<&str> = KINDS.iter().map(|kind| kind.form()).collect();
            let forms = forms.join(", ");
            Error::Invalid(format!(
                "{text:?} is no space: {what} (one of {forms}, each with {SIZE}SIZE if need be)"
            ))
        };
        let (name, size) = match text.rsplit_once(SIZE) {
            Some((name, size)) => (name, Some(parse_size(size).map_err(|e| wrong(&e))? as u64)),
            None => (text, None),
        };
        let (kind, argument) = match name.split_once(':') {
            Some((kind, argument)) => (kind, Some(argument)),
            None => (name, None),
        };
        // A directory may have commas in its name.
        if let Some((before, last)) = name.rsplit_once(',')
            && size.is_none()
            && last.ends_with(|end: char| end.is_ascii_alphabetic())
            && parse_size(last).is_ok()
        {
            return Err(wrong(&format!(
                "a size is written {before}{SIZE}{last}, and a directory of that name {name}/"
            )));
        }
        let known = KINDS.into_iter().find(|known| known.name() == kind);
        let known = known.ok_or_else(|| wrong("there is no such kind"))?;
        known.check(argument).map_err(|e| wrong(&e.to_string()))?;
        let (name, argument) = (name.to_owned(), argument.unwrap_or_default().to_owned());
        Ok(SpaceSpec { kind: known, name, argument, size })
    }

    /// The most that the space holds, if that was said.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Opens the space for a load that may use so many bytes of memory.
    ///
    /// # Errors
    /// `Invalid` or `Unavailable` when it is not there.
    pub fn open(&self, memory: u64) -> Result<Arc<dyn Space>> {
        let SpaceSpec { kind, name, argument, size } = self;
        kind.open(&Opening { name, argument, size: *size, memory })
    }

    /// `map:` of a directory, whatever characters are in its name.
    pub fn map(dir: &str) -> Self {
        let name = format!("map:{dir}");
        SpaceSpec { kind: &MapKind, name, argument: dir.to_owned(), size: None }
    }
}

impl PartialEq for SpaceSpec {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.size) == (&other.name, other.size)
    }
}

impl Eq for SpaceSpec {}

impl Debug for SpaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.size.map_or(Ok(()), |size| write!(f, "{SIZE}{size}"))
    }
}

/// Checks that nothing stands behind the name of a kind.
pub(crate) fn no_argument(argument: Option<&str>) -> Result<()> {
    match argument {
        None => Ok(()),
        Some(_) => Err(Error::Invalid("nothing stands behind its name but a size".into())),
    }
}

//! Members of archives, named as `archive.zip!name`.

mod book;
mod place;
mod tar;
mod zip;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use coload_types::{Error, Result};

use crate::compression::Compression;
use crate::decoder::Decoder;
use crate::inputs::{InputFile, InputSource};
use crate::open::TextInput;
use crate::raw::{Raw, RawFile};
use book::{find_sheets, is_book, open_sheet};

pub use book::{SheetArea, SheetChoice};
pub use place::ArchiveAt;

/// Between the archive and the name of a member.
pub const SEPARATOR: char = '!';
/// Documents that are zip files, by a member that they have.
const DOCUMENTS: [(&str, &str); 4] = [
    ("xl/workbook.bin", "a binary Excel workbook (.xlsb)"),
    ("Index/Document.iwa", "a document of Apple iWork"),
    ("word/document.xml", "a Word document"),
    ("content.xml", "a document of OpenDocument"),
];
/// Folder into which macOS puts what it knows of the other members.
const MACOS_FOLDER: &str = "__MACOSX";
/// Endings of names of archives and workbooks, besides those of compressed tar files.
const ENDINGS: [&str; 4] = ["zip", "tar", "xlsx", "xlsm"];
/// Files that file managers leave.
const LEFTOVERS: [&str; 4] = [".DS_Store", "Thumbs.db", "desktop.ini", "Icon\r"];
/// Members that a message names.
const SHOWN_MAX: usize = 10;

/// Where a member of an archive lies, and what it must be when it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Name of the member in the archive.
    pub name: String,
    /// First stored byte; in a compressed tar file, of the decompressed one.
    pub start: u64,
    /// Length as it is stored, compressed or not, bytes.
    pub bytes: u64,
    /// How it is stored.
    pub stored: Stored,
}

/// How a member is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// In a tar file, as it is.
    Tar,
    /// In a tar file that is compressed as a whole.
    CompressedTar,
    /// In a zip file.
    Zip {
        /// How it is compressed, if it is.
        format: Option<Compression>,
        /// What it must be.
        check: Check,
    },
    /// As cells of a book: its text is made of them, and is not what is stored.
    Sheet(SheetArea),
}

/// Length and checksum that a text must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Length of the text, bytes.
    pub bytes: u64,
    /// CRC-32 of the text.
    pub crc: u32,
}

/// The members of a file if it is an archive; directories are left out.
///
/// # Errors
/// `Input` when it is damaged, `Unavailable` when it cannot be read.
fn members(file: &Arc<RawFile>) -> Result<Option<Vec<Member>>> {
    let mut head = [0; tar::HEADER_BYTES];
    let read = file.read_at(&mut head, 0)?;
    let head = &head[..read];
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        return zip::members(file).map(Some);
    }
    if tar::is_header(head) {
        return tar::members(file.reader(0), file.name(), Stored::Tar).map(Some);
    }
    let Some(format) = Compression::detect(head) else { return Ok(None) };
    let mut text = tar_decoder(file.name(), file.reader(0), format)?;
    let mut first = Vec::new();
    text.fill(&mut first, tar::HEADER_BYTES)?;
    if !tar::is_header(&first) {
        return Ok(None);
    }
    let text = tar_decoder(file.name(), file.reader(0), format)?;
    tar::members(text.into_reader(), file.name(), Stored::CompressedTar).map(Some)
}

fn tar_decoder(name: &str, raw: Raw, format: Compression) -> Result<Decoder> {
    Decoder::new(name, raw, Some(format), 0, u64::MAX)
}

/// The members of an archive that a pattern names.
///
/// # Errors
/// `Invalid` when there are none, or it is no archive; `Input` when it is damaged.
pub fn find_members(
    file: &Arc<RawFile>,
    archive: &ArchiveAt,
    pattern: &str,
    choice: &SheetChoice,
) -> Result<Vec<InputFile>> {
    let shown = file.name();
    let Some(all) = members(file)? else {
        return Err(Error::Invalid(format!("{shown} is not a zip or tar file")));
    };
    if is_book(&all) {
        return find_sheets(shown, archive, all, Some(pattern), choice);
    }
    let is_glob = pattern.contains(['*', '?', '[']);
    let glob = glob::Pattern::new(pattern).ok().filter(|_| is_glob);
    let exact = all.iter().any(|m| m.name == pattern);
    let mut found: Vec<&Member> = all
        .iter()
        .filter(|m| match &glob {
            Some(glob) if !exact => glob.matches(&m.name) && !is_leftover(&m.name),
            _ => m.name == pattern,
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    if found.is_empty() {
        return Err(Error::Invalid(format!(
            "{shown} has no member {pattern}; it has {}",
            list(&all)
        )));
    }
    Ok(found.into_iter().map(|member| input(file, archive, member)).collect())
}

/// Bytes of the head of a file by which an archive is told.
pub const ARCHIVE_HEAD_BYTES: usize = tar::HEADER_BYTES;

/// The only member of a file that is an archive; `None` for other files. `head` is its first [`ARCHIVE_HEAD_BYTES`], or more.
///
/// # Errors
/// `Invalid` when it has none or several.
pub fn only_member(
    (file, head): (&Arc<RawFile>, &[u8]),
    archive: &ArchiveAt,
    choice: &SheetChoice,
) -> Result<Option<InputFile>> {
    let shown = file.name();
    let head = &head[..head.len().min(ARCHIVE_HEAD_BYTES)];
    let is_archive = head.starts_with(b"PK\x03\x04") || tar::is_header(head);
    // To look into what is compressed costs; its name has to say it.
    if !is_archive && !named_as_tar(archive.path()) {
        return Ok(None);
    }
    let Some(mut all) = members(file)? else { return Ok(None) };
    if is_book(&all) {
        return Ok(find_sheets(shown, archive, all, None, choice)?.pop());
    }
    if let Some((_, what)) = DOCUMENTS.iter().find(|(part, _)| all.iter().any(|m| m.name == *part))
    {
        return Err(Error::Invalid(format!(
            "{shown} looks like {what}, which is not read: save the sheet as .xlsx or CSV, and load that"
        )));
    }
    if all.iter().any(|member| !is_leftover(&member.name)) {
        all.retain(|member| !is_leftover(&member.name));
    }
    match &all[..] {
        [only] => Ok(Some(input(file, archive, only))),
        all => Err(Error::Invalid(format!(
            "{shown} has {} members: name one, or several, as '{shown}{SEPARATOR}*.csv'; it has {}",
            all.len(),
            list(all)
        ))),
    }
}

/// Whether a member is what a file manager left: it counts where it is named, and not otherwise.
fn is_leftover(member: &str) -> bool {
    let (folders, name) = member.rsplit_once('/').unwrap_or(("", member));
    let of_a_file = name.starts_with("._") || LEFTOVERS.contains(&name);
    of_a_file || folders.split('/').any(|folder| folder == MACOS_FOLDER)
}

fn named_as_tar(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    [".tgz", ".tbz2", ".txz", ".tzst"].iter().any(|end| name.ends_with(end))
        || name.rsplit_once('.').is_some_and(|(stem, _)| stem.ends_with(".tar"))
}

fn list(members: &[Member]) -> String {
    let shown: Vec<&str> = members.iter().take(SHOWN_MAX).map(|m| m.name.as_str()).collect();
    match (shown.is_empty(), members.len().saturating_sub(SHOWN_MAX)) {
        (true, _) => "no files".to_owned(),
        (_, 0) => shown.join(", "),
        (_, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

fn input(file: &RawFile, archive: &ArchiveAt, member: &Member) -> InputFile {
    let name = format!("{}{SEPARATOR}{}", file.name(), member.name);
    let source = InputSource::Member { archive: archive.clone(), member: member.clone() };
    InputFile { name, source }
}

/// Archives that their names do not tell are told, and not taken for text: objects are not looked at when they are found.
///
/// # Errors
/// `Invalid` when the first bytes are those of an archive.
pub fn refuse_archive(name: &str, head: &[u8]) -> Result<()> {
    match head.starts_with(b"PK\x03\x04") || tar::is_header(head) {
        true => Err(Error::Invalid(format!(
            "{name} is an archive or a workbook, which of an object its name must tell: call it .zip, .tar or .xlsx, or fetch it, and load the file"
        ))),
        false => Ok(()),
    }
}

/// Whether the name of an object tells that it is an archive or a workbook.
pub fn is_named_as_archive(key: &str) -> bool {
    let path = Path::new(key);
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) || named_as_tar(path)
}

/// Address of an archive and member of an argument, if its part before a separator is named as an archive.
pub fn split_address(argument: &str) -> Option<(&str, &str)> {
    argument.match_indices(SEPARATOR).find_map(|(at, _)| {
        let (archive, member) = (&argument[..at], &argument[at + 1..]);
        (is_named_as_archive(archive) && !member.is_empty()).then_some((archive, member))
    })
}

/// Archive and member of an argument, if its part before a separator is a file.
pub fn split_argument(argument: &str) -> Option<(PathBuf, &str)> {
    argument.match_indices(SEPARATOR).find_map(|(at, _)| {
        let path = PathBuf::from(&argument[..at]);
        path.is_file().then_some((path, &argument[at + 1..]))
    })
}

/// Opens a member to be read as text.
///
/// # Errors
/// `Unavailable` when the archive cannot be read, `Input` when it is damaged.
pub fn open_member(name: &str, archive: &ArchiveAt, member: &Member) -> Result<TextInput> {
    if let Stored::Sheet(SheetArea { area, .. }) = member.stored {
        return open_sheet(name, archive, &member.name, area);
    }
    match member.stored {
        Stored::Tar => TextInput::of_file(archive.open_part(name, member)?),
        Stored::Zip { format, check } => {
            let mut input = TextInput::of_file(archive.open_part(name, member)?)?;
            match format {
                Some(format) => input.format = Some(format),
                // What is compressed within has its own checksum.
                None if input.format.is_some() => return Ok(input),
                None => {}
            }
            input.check = Some(check);
            Ok(input)
        }
        Stored::CompressedTar | Stored::Sheet(_) => {
            let file = Arc::new(archive.open(name)?);
            let mut head = [0; tar::HEADER_BYTES];
            let read = file.read_at(&mut head, 0)?;
            let format = Compression::detect(&head[..read]);
            let text = Decoder::new(name, file.reader(0), format, 0, u64::MAX)?.into_reader();
            TextInput::of_stream(name, Box::new(tar::part(text, name, member)?))
        }
    }
}

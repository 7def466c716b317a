//! The folder of Parquet files: what is there, and whether a load fits it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use coload_ddl::Schema;
use coload_parquet::{check_schema, read_schema};
use coload_store::LoadMode;
use coload_types::{Error, Result};
use parquet::file::metadata::{FileMetaData, ParquetMetaDataReader};

use super::files::CREATED_BY_ANY;

/// What names of files end with that readers find.
pub const SUFFIX: &str = ".parquet";
/// The file that makes a folder a store.
const STORE_MARK: &str = "format";
/// What a store's mark begins with.
const STORE_MARK_TEXT: &[u8] = b"coload store";

/// A folder of Parquet files, which may not be there yet.
#[derive(Debug, Clone)]
pub struct ParquetFolder {
    path: PathBuf,
}

/// A file that is there.
struct Found {
    name: String,
    footer: FileMetaData,
}

impl Found {
    fn is_ours(&self) -> bool {
        self.footer.created_by().is_some_and(|program| program.starts_with(CREATED_BY_ANY))
    }
}

impl ParquetFolder {
    /// A folder.
    ///
    /// # Errors
    /// `Invalid` when it has no name, is a file, or a store.
    pub fn new(path: &Path) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::Invalid("parquet: names no directory, as parquet:DIR does".into()));
        }
        let refuse = |what| Err(Error::Invalid(format!("{} {what}", path.display())));
        if path.exists() && !path.is_dir() {
            return refuse("is not a directory");
        }
        let mark = fs::read(path.join(STORE_MARK)).unwrap_or_default();
        if mark.starts_with(STORE_MARK_TEXT) {
            return refuse(
                "is a store: name another directory for Parquet files, or leave out parquet:",
            );
        }
        Ok(ParquetFolder { path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of its Parquet files, as readers of `*.parquet` find them.
    fn names(&self) -> Result<Vec<String>> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let mut names = self.list(|name| {
            (name.ends_with(SUFFIX) && !name.starts_with('.')).then(|| name.to_owned())
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// What `parse` makes of the names in it.
    ///
    /// # Errors
    /// `Invalid` when it cannot be read.
    pub(super) fn list<T>(&self, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
        let fail = |e: io::Error| Error::io("list", &self.path, &e);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(fail)? {
            let name = entry.map_err(fail)?.file_name();
            found.extend(name.to_str().and_then(&parse));
        }
        Ok(found)
    }

    fn read(&self, name: String) -> Result<Found> {
        let path = self.path.join(&name);
        let file = File::open(&path).map_err(|e| Error::io("open", &path, &e))?;
        let footer = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|error| {
            Error::Corrupt(format!("{} cannot be read as Parquet: {error}", path.display()))
        })?;
        Ok(Found { name, footer: footer.file_metadata().clone() })
    }

    /// The columns of its files; `None` when there are none.
    ///
    /// # Errors
    /// `Invalid` when a column is of a type that a load does not write, `Corrupt` when a file is no Parquet.
    pub fn schema(&self) -> Result<Option<Schema>> {
        let Some(first) = self.names()?.into_iter().next() else { return Ok(None) };
        let found = self.read(first)?;
        let schema = read_schema(&found.footer).map_err(|error| self.about(&found.name, &error))?;
        Ok(Some(schema))
    }

    fn about(&self, name: &str, error: &Error) -> Error {
        Error::Invalid(format!("{}: {error}", self.path.join(name).display()))
    }

    /// Checks that a load may add its files; gives the names of those that they replace.
    ///
    /// # Errors
    /// `Invalid` when there are files that must not be, or that have other columns; `Corrupt` when one is no Parquet.
    pub(super) fn check(&self, mode: LoadMode, schema: &Schema) -> Result<Vec<String>> {
        let names = self.names()?;
        match mode {
            LoadMode::Create => match names.first() {
                None => Ok(Vec::new()),
                Some(first) => Err(Error::Invalid(format!(
                    "--create: {} has {} Parquet files, {first} the first (--append adds to them, --replace replaces \
                     those that coload wrote)",
                    self.path.display(),
                    names.len()
                ))),
            },
            LoadMode::Append => {
                for name in names {
                    let found = self.read(name)?;
                    check_schema(&found.footer, schema).map_err(|error| {
                        let name = self.path.join(&found.name);
                        Error::Invalid(format!("cannot add to {}: {error}", name.display()))
                    })?;
                }
                Ok(Vec::new())
            }
            LoadMode::Replace => {
                let found = names.into_iter().map(|name| self.read(name));
                let found = found.collect::<Result<Vec<_>>>()?;
                let others: Vec<&str> =
                    found.iter().filter(|f| !f.is_ours()).map(|f| f.name.as_str()).collect();
                if !others.is_empty() {
                    return Err(Error::Invalid(format!(
                        "--replace: coload load did not write {} in {}: remove or move what is not wanted",
                        others.join(", "),
                        self.path.display()
                    )));
                }
                Ok(found.into_iter().map(|found| found.name).collect())
            }
        }
    }
}

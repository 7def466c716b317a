//! Generated files under a name that holds a checksum of what made them.
//!
//! `cache/lineitem-sf1-3f0c9a51.tbl` is used as it is when present: the checksum covers the generator's version
//! and parameters, so changed data gets another name. The schema lies beside it, with the ending `.sql`.
//!
//! Source: seed 003, "Test Fixtures".

use std::io;
use std::path::{Path, PathBuf};

/// Path of the file `stem` in `directory`, made by `generate` unless it is there.
///
/// # Errors
/// Those of creating the directory and of `generate`.
pub fn file(
    directory: &Path,
    stem: &str,
    version: &str,
    schema: &str,
    generate: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<PathBuf> {
    let path = directory.join(format!("{stem}-{:08x}.tbl", checksum(&[stem, version, schema])));
    std::fs::create_dir_all(directory)
        .map_err(|e| io::Error::new(e.kind(), format!("creating {}: {e}", directory.display())))?;
    write_schema(&path, schema)?;
    if !path.exists() {
        generate(&path)?;
    }
    Ok(path)
}

/// Writes `schema` beside `data`, under the same name with the ending `.sql`.
///
/// # Errors
/// Those of writing the file, with its path.
pub fn write_schema(data: &Path, schema: &str) -> io::Result<()> {
    let path = data.with_extension("sql");
    std::fs::write(&path, schema)
        .map_err(|e| io::Error::new(e.kind(), format!("writing {}: {e}", path.display())))
}

/// FNV-1a of the parts and their boundaries, folded to 32 bits.
fn checksum(parts: &[&str]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    (hash ^ (hash >> 32)) as u32
}

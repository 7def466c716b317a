//! The tree of an index from the columns of a segment.

use coload_ddl::{Key, KeyKind, Schema};
use coload_transform::{put_key, sort_keys};
use coload_types::{Error, Result};

use super::complete::open_index;
use super::file::{EncodedIndex, IndexTree, encode_index};
use crate::SegmentFile;
use crate::directory::Layout;
use crate::held::HeldBytes;
use crate::keyed::read_keys;
use crate::manifest::SegmentEntry;
use crate::snapshot::open_segment;

/// Builds the tree of some columns of a segment.
///
/// # Errors
/// `Corrupt` when the segment is not what was written, `Limit` when it has too many rows.
pub(super) fn build_index(
    segment: &SegmentFile,
    schema: &Schema,
    columns: &[usize],
) -> Result<EncodedIndex> {
    // NULL may stand in a key that orders rows and promises nothing else.
    let key = Key::new(KeyKind::Cluster, columns.to_vec())?;
    let values = read_keys(&[segment], schema, &key)?;
    let order = sort_keys(&values)?;
    let count = segment.rows() as usize;
    let nullable = vec![true; columns.len()];
    let key_at = |place: usize| {
        let mut bytes = Vec::new();
        put_key(&values, &nullable, order.row(place), &mut bytes);
        bytes
    };
    let ends = match count.checked_sub(1) {
        Some(last) => (key_at(0), key_at(last)),
        None => Default::default(),
    };
    let mut repeated = order.repeated.iter().map(|place| *place as usize).peekable();
    let mut next = 0;
    let keys = std::iter::from_fn(|| {
        let first = next;
        if first == count {
            return None;
        }
        next += 1;
        while repeated.next_if_eq(&next).is_some() {
            next += 1;
        }
        Some((key_at(first), (next - first) as u32))
    });
    let rows: Vec<u32> = (0..count).map(|place| order.row(place) as u32).collect();
    encode_index((&ends.0, &ends.1), keys, &rows)
}

/// Compares the tree of an index with one that is built of its segment. A segment that cannot be read is said of itself.
///
/// # Errors
/// `Corrupt` when the tree is another.
pub(crate) fn verify_index(
    layout: &Layout,
    schema: &Schema,
    segment: &SegmentEntry,
    tree: &IndexTree,
) -> Result<()> {
    let path = layout.segment(&tree.part.file);
    let index = open_index(layout, segment, tree)?;
    let found = index.bytes(&tree.part)?;
    let source = layout.segment(&segment.file);
    let built = open_segment(&source, schema, segment, HeldBytes::new(0))
        .and_then(|file| build_index(&file, schema, &tree.columns));
    match built {
        Ok(built) if built.bytes != found => {
            let what = format!("an index of segment {} has other keys than its rows", segment.file);
            Err(Error::corrupt(&path, what))
        }
        Ok(_) | Err(Error::Corrupt(_)) => Ok(()),
        Err(other) => Err(other),
    }
}

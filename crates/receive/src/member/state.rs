//! What a store keeps of its cluster: which it is, which node it is of, and what of the map is done.
//!
//! ```text
//!   cluster 16  node 16  applied  tables: id in the map, name in the store
//! ```

use std::collections::BTreeMap;

use coload_cluster::NodeId;
use coload_types::bytes::{ByteReader, put_bytes, put_varint};
use coload_types::{Error, Result};

/// What a store keeps of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The cluster.
    pub cluster: u128,
    /// The node that the store is of.
    pub node: NodeId,
    /// The version of the map up to which all is done.
    pub applied: u64,
    /// Tables of the map that the store has, by their ids there.
    pub tables: BTreeMap<u64, String>,
}

impl State {
    /// The state as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.cluster.to_le_bytes().to_vec();
        out.extend(self.node.as_u128().to_le_bytes());
        put_varint(&mut out, self.applied);
        put_varint(&mut out, self.tables.len() as u64);
        for (id, name) in &self.tables {
            put_varint(&mut out, *id);
            put_bytes(&mut out, name.as_bytes());
        }
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let cluster = reader.i128()? as u128;
        let node = NodeId::from_u128(reader.i128()? as u128);
        let applied = reader.varint()?;
        let mut tables = BTreeMap::new();
        for _ in 0..reader.count(2)? {
            let id = reader.varint()?;
            let name = String::from_utf8(reader.bytes()?.to_vec());
            let name =
                name.map_err(|_| Error::Corrupt("a name of a table of the cluster".into()))?;
            tables.insert(id, name);
        }
        reader.finish()?;
        Ok(State { cluster, node, applied, tables })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_state_comes_back_and_a_cut_one_is_refused() {
        let tables = BTreeMap::from([(3, "t".to_owned()), (900, "größe".to_owned())]);
        let state = State { cluster: 7, node: NodeId::from_u128(9), applied: 300, tables };
        let bytes = state.encode();
        assert_eq!(State::decode(&bytes).unwrap(), state);
        assert!((0..bytes.len()).all(|cut| State::decode(&bytes[..cut]).is_err()));
    }
}

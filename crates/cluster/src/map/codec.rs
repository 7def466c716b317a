//! A map as bytes, and back.
//!
//! ```text
//!   "coload map 3\n"  version  cluster 16  horizon  next table
//!   nodes: id 16, address, joined
//!   tables: id, CREATE TABLE, 0 in turn | 1 columns: count, numbers | 2 everywhere, leaves: id 16, shards: leaf,
//!           0 or 1 and the node that makes it 16,
//!           0 or 1 and the move: load 16, node 16, leaves, shards,  0 or 1 and the holder: load 16, node 16, version,
//!           version since which shards are where they are
//!   events: version, 0 load 16 table | 1 load 16 | 2 load 16 table
//!   checksum 8
//! ```
//!
//! Numbers are varints unless said otherwise. Whatever the bytes are, reading them does not panic.

use coload_ddl::{create_table_sql, parse_create_table};
use coload_store::LoadId;
use coload_types::bytes::{ByteReader, checksum, put_bytes, put_varint};
use coload_types::{Error, Result};

use super::{Event, Map, NODES_MAX, Node, NodeId, SHARDS_MAX, ShardBy, Table, What};
use crate::holds::Holder;
use crate::moves::Moving;

/// What a map begins with; another number is another form.
const MAGIC: &[u8] = b"coload map 3\n";
const SUM_BYTES: usize = 8;
const ID_BYTES: usize = 16;

impl Map {
    /// The map as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_varint(&mut out, self.version);
        out.extend(self.cluster.to_le_bytes());
        put_varint(&mut out, self.horizon);
        put_varint(&mut out, self.next_table);
        put_varint(&mut out, self.nodes.len() as u64);
        for Node { id, address, joined } in &self.nodes {
            out.extend(id.as_u128().to_le_bytes());
            put_bytes(&mut out, address.as_bytes());
            put_varint(&mut out, *joined);
        }
        put_varint(&mut out, self.tables.len() as u64);
        self.tables.iter().for_each(|table| put_table(&mut out, table));
        put_varint(&mut out, self.events.len() as u64);
        for Event { version, what } in &self.events {
            put_varint(&mut out, *version);
            let (kind, load) = match what {
                What::Loaded { load, .. } => (0, load),
                What::Aborted { load } => (1, load),
                What::Moved { load, .. } => (2, load),
            };
            out.push(kind);
            out.extend(load.as_u128().to_le_bytes());
            if let What::Loaded { table, .. } | What::Moved { table, .. } = what {
                put_varint(&mut out, *table);
            }
        }
        let sum = checksum(&out);
        out.extend(sum.to_le_bytes());
        out
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Refused` when it is of another version of the program.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let Some(length) = bytes.len().checked_sub(SUM_BYTES) else {
            return Err(damaged("it is too short"));
        };
        let (body, sum) = bytes.split_at(length);
        if !body.starts_with(MAGIC) {
            return Err(Error::Refused(
                "the map of the cluster has a form that this version of coload does not know (update it)".into(),
            ));
        }
        if checksum(body).to_le_bytes() != *sum {
            return Err(damaged("its checksum is another"));
        }
        let mut reader = ByteReader::new(&body[MAGIC.len()..]);
        let version = reader.varint()?;
        let cluster = reader.i128()? as u128;
        let (horizon, next_table) = (reader.varint()?, reader.varint()?);
        let count = reader.count(ID_BYTES + 2)?;
        if count > NODES_MAX {
            return Err(damaged(&format!("{count} nodes")));
        }
        let mut nodes = Vec::with_capacity(count);
        for _ in 0..count {
            let id = read_node(&mut reader)?;
            nodes.push(Node { id, address: read_text(&mut reader)?, joined: reader.varint()? });
        }
        let count = reader.count(4)?;
        let tables = (0..count).map(|_| read_table(&mut reader)).collect::<Result<_>>()?;
        let count = reader.count(ID_BYTES + 2)?;
        let events = (0..count).map(|_| read_event(&mut reader)).collect::<Result<_>>()?;
        reader.finish()?;
        Ok(Map { version, cluster, nodes, tables, events, horizon, next_table })
    }
}

fn damaged(what: &str) -> Error {
    Error::Corrupt(format!("the map of the cluster: {what}"))
}

fn put_table(out: &mut Vec<u8>, table: &Table) {
    put_varint(out, table.id);
    put_bytes(out, create_table_sql(&table.name, &table.schema).as_bytes());
    match &table.shard_by {
        ShardBy::InTurn => out.push(0),
        ShardBy::Everywhere => out.push(2),
        ShardBy::Columns(columns) => {
            out.push(1);
            put_varint(out, columns.len() as u64);
            columns.iter().for_each(|column| put_varint(out, *column as u64));
        }
    }
    put_leaves(out, &table.leaves, &table.shards);
    out.push(u8::from(table.making.is_some()));
    table.making.iter().for_each(|node| out.extend(node.as_u128().to_le_bytes()));
    out.push(u8::from(table.moving.is_some()));
    if let Some(Moving { load, node, leaves, shards }) = &table.moving {
        out.extend(load.as_u128().to_le_bytes());
        out.extend(node.as_u128().to_le_bytes());
        put_leaves(out, leaves, shards);
    }
    out.push(u8::from(table.holder.is_some()));
    if let Some(Holder { load, node, since }) = &table.holder {
        out.extend(load.as_u128().to_le_bytes());
        out.extend(node.as_u128().to_le_bytes());
        put_varint(out, *since);
    }
    put_varint(out, table.since);
}

fn put_leaves(out: &mut Vec<u8>, leaves: &[NodeId], shards: &[u16]) {
    put_varint(out, leaves.len() as u64);
    leaves.iter().for_each(|leaf| out.extend(leaf.as_u128().to_le_bytes()));
    put_varint(out, shards.len() as u64);
    shards.iter().for_each(|leaf| put_varint(out, u64::from(*leaf)));
}

fn read_leaves(reader: &mut ByteReader<'_>) -> Result<(Vec<NodeId>, Vec<u16>)> {
    let count = reader.count(ID_BYTES)?;
    let leaves = (0..count).map(|_| read_node(reader)).collect::<Result<Vec<_>>>()?;
    let count = reader.count(1)?;
    if count == 0 || count > SHARDS_MAX as usize || leaves.len() > NODES_MAX {
        return Err(damaged(&format!("{count} shards on {} leaves", leaves.len())));
    }
    let mut shards = Vec::with_capacity(count);
    for _ in 0..count {
        let leaf = reader.varint_u32()?;
        if leaf as usize >= leaves.len() {
            return Err(damaged(&format!("a shard on leaf {leaf} of {}", leaves.len())));
        }
        shards.push(leaf as u16);
    }
    Ok((leaves, shards))
}

fn read_moving(reader: &mut ByteReader<'_>, shards: usize) -> Result<Option<Moving>> {
    match reader.u8()? {
        0 => return Ok(None),
        1 => {}
        other => return Err(damaged(&format!("shards that move in way {other}"))),
    }
    let load = LoadId::from_u128(reader.i128()? as u128);
    let node = read_node(reader)?;
    let (leaves, moved) = read_leaves(reader)?;
    match moved.len() == shards {
        true => Ok(Some(Moving { load, node, leaves, shards: moved })),
        false => Err(damaged(&format!("{shards} shards, of which {} move", moved.len()))),
    }
}

fn read_holder(reader: &mut ByteReader<'_>) -> Result<Option<Holder>> {
    match reader.u8()? {
        0 => return Ok(None),
        1 => {}
        other => return Err(damaged(&format!("a table that is held in way {other}"))),
    }
    let load = LoadId::from_u128(reader.i128()? as u128);
    Ok(Some(Holder { load, node: read_node(reader)?, since: reader.varint()? }))
}

fn read_making(reader: &mut ByteReader<'_>) -> Result<Option<NodeId>> {
    match reader.u8()? {
        0 => Ok(None),
        1 => read_node(reader).map(Some),
        other => Err(damaged(&format!("a table that is made {other} times"))),
    }
}

fn read_table(reader: &mut ByteReader<'_>) -> Result<Table> {
    let id = reader.varint()?;
    let (name, schema) = parse_create_table(&read_text(reader)?)?;
    let shard_by = match reader.u8()? {
        0 => ShardBy::InTurn,
        1 => {
            let count = reader.count(1)?;
            let column = |_| Ok(reader.varint_u32()? as usize);
            ShardBy::Columns((0..count).map(column).collect::<Result<_>>()?)
        }
        2 => ShardBy::Everywhere,
        other => return Err(damaged(&format!("rows that are dealt in way {other}"))),
    };
    if let ShardBy::Columns(columns) = &shard_by
        && columns.iter().any(|column| *column >= schema.len())
    {
        return Err(damaged("a shard column that its table lacks"));
    }
    let (leaves, shards) = read_leaves(reader)?;
    let making = read_making(reader)?;
    let moving = read_moving(reader, shards.len())?;
    let holder = read_holder(reader)?;
    let since = reader.varint()?;
    Ok(Table { id, name, schema, shard_by, leaves, shards, making, moving, holder, since })
}

fn read_event(reader: &mut ByteReader<'_>) -> Result<Event> {
    let (version, kind) = (reader.varint()?, reader.u8()?);
    let load = LoadId::from_u128(reader.i128()? as u128);
    let what = match kind {
        0 => What::Loaded { load, table: reader.varint()? },
        1 => What::Aborted { load },
        2 => What::Moved { load, table: reader.varint()? },
        other => return Err(damaged(&format!("an event of kind {other}"))),
    };
    Ok(Event { version, what })
}

fn read_node(reader: &mut ByteReader<'_>) -> Result<NodeId> {
    Ok(NodeId::from_u128(reader.i128()? as u128))
}

fn read_text(reader: &mut ByteReader<'_>) -> Result<String> {
    String::from_utf8(reader.bytes()?.to_vec()).map_err(|_| damaged("a text that is not UTF-8"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use coload_ddl::parse_columns;
    use proptest::prelude::*;

    use super::*;

    fn map() -> Map {
        let mut map = Map::new(77);
        for n in 1..4_u128 {
            let address = format!("coload://leaf{n}:8470");
            map.nodes.push(Node { id: NodeId::from_u128(n), address, joined: 1 });
        }
        let schema =
            parse_columns("a BIGINT NOT NULL, \"b c\" VARCHAR(9), PRIMARY KEY (a)").unwrap();
        map.add_table("t", schema, ShardBy::Columns(vec![0]), 16).unwrap();
        map.add_table("u", parse_columns("x DOUBLE").unwrap(), ShardBy::InTurn, 3).unwrap();
        map.tables[1].making = Some(NodeId::from_u128(2));
        let schema = parse_columns("y DATE").unwrap();
        map.add_table("v", schema, ShardBy::Everywhere, 64).unwrap();
        assert_eq!((map.tables[2].leaves.len(), &map.tables[2].shards[..]), (3, &[0][..]));
        let load = LoadId::from_u128(12);
        let (leaves, shards) = (vec![NodeId::from_u128(3), NodeId::from_u128(1)], vec![1; 16]);
        let node = NodeId::from_u128(2);
        map.tables[0].moving = Some(Moving { load, node, leaves, shards });
        map.tables[2].holder = Some(Holder { load, node, since: 8 });
        map.version = 9;
        map.decide(What::Loaded { load: LoadId::from_u128(5), table: 1 });
        map.decide(What::Aborted { load: LoadId::from_u128(6) });
        map.decide(What::Moved { load: LoadId::from_u128(7), table: 2 });
        map
    }

    #[test]
    fn a_map_comes_back_and_a_cut_one_is_refused() {
        let (map, bytes) = (map(), map().encode());
        assert_eq!(Map::decode(&bytes).unwrap(), map);
        assert_eq!(map.loaded(LoadId::from_u128(5), 1), Some(9));
        assert_eq!(map.loaded(LoadId::from_u128(5), 2), None);
        assert_eq!(map.aborted(LoadId::from_u128(6)), Some(9));
        assert!((0..bytes.len()).all(|cut| Map::decode(&bytes[..cut]).is_err()));
        let other = [b"coload map 1\n", &bytes[13..]].concat();
        assert!(matches!(Map::decode(&other), Err(Error::Refused(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(at: usize, byte: u8, more in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = map().encode();
            bytes.truncate(bytes.len() - SUM_BYTES);
            let at = MAGIC.len() + at % (bytes.len() - MAGIC.len());
            bytes[at] = byte;
            bytes.splice(at.., more.into_iter().take(at % 50));
            let sum = checksum(&bytes);
            bytes.extend(sum.to_le_bytes());
            let _ = Map::decode(&bytes);
        }
    }

    #[test]
    fn rows_of_one_key_are_on_one_leaf() {
        let mut map = map();
        let schema = || parse_columns("a BIGINT, b BIGINT, c BIGINT, PRIMARY KEY (a, b)").unwrap();
        let mut add = |shard_by| map.add_table("w", schema(), shard_by, 4);
        assert!(add(ShardBy::Columns(vec![2])).is_err());
        assert!(add(ShardBy::Columns(vec![0, 2])).is_err());
        assert!(add(ShardBy::InTurn).is_err());
        assert!(add(ShardBy::Columns(vec![1])).is_ok());
        assert!(add(ShardBy::Columns(vec![1])).is_err(), "it is there");
    }
}

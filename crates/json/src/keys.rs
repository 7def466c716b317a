//! The paths of the fields of a record, as a tree of keys.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::masks::STEP;

/// What a field takes of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Holds {
    /// What strings stand for; all else as it is written.
    #[default]
    Value,
    /// JSON, with the quotes of strings: a field of which some values are lists or objects.
    Json,
}

/// Where the value of a field stands in a record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path {
    /// Keys, the outermost first; at least one.
    pub keys: Vec<String>,
    /// What the field takes.
    pub holds: Holds,
}

/// Paths as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Objects; the first is the record.
    pub(crate) objects: Vec<Object>,
    /// Keys of all objects.
    pub(crate) entries: Vec<Entry>,
    paths: Vec<Path>,
}

/// An object whose values are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Object {
    /// The entry that comes first, most likely.
    pub first: u32,
    /// The entry that was added last.
    last: Option<u32>,
    pub by_name: HashMap<Box<[u8]>, u32, RandomState>,
}

/// A key of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key in quotes, if it fits.
    pub quoted: [u8; STEP],
    /// Bytes of it; 0 where it is not compared, as it is long or may have escapes.
    pub length: u32,
    pub target: Target,
    /// The entry that comes next, most likely.
    pub next: u32,
}

/// What a key has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Field(u32),
    Object(u32),
}

impl Keys {
    /// A field for each path, in their order.
    ///
    /// # Errors
    /// What to say when a path has no key, comes twice, or goes on where another ends.
    pub fn new(paths: Vec<Path>) -> Result<Self, String> {
        let mut keys =
            Keys { objects: vec![Object::default()], entries: Vec::new(), paths: Vec::new() };
        for (field, path) in paths.iter().enumerate() {
            let Some((last, outer)) = path.keys.split_last() else {
                return Err("a path has no key".to_owned());
            };
            let clash = || format!("path {} clashes with another", path.keys.join("."));
            let mut object = 0;
            for key in outer {
                object = match keys.target(object, key) {
                    Some(Target::Object(inner)) => inner,
                    Some(Target::Field(_)) => return Err(clash()),
                    None => {
                        let inner = keys.objects.len() as u32;
                        keys.objects.push(Object::default());
                        keys.add(object, key, Target::Object(inner));
                        inner
                    }
                };
            }
            if keys.target(object, last).is_some() {
                return Err(clash());
            }
            keys.add(object, last, Target::Field(field as u32));
        }
        keys.paths = paths;
        Ok(keys)
    }

    /// The paths of the fields.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }

    fn target(&self, object: u32, key: &str) -> Option<Target> {
        let entry = self.objects[object as usize].by_name.get(key.as_bytes())?;
        Some(self.entries[*entry as usize].target)
    }

    fn add(&mut self, object: u32, key: &str, target: Target) {
        let entry = self.entries.len() as u32;
        let mut quoted = [0; STEP];
        let plain = key.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\'));
        let mut length = 0;
        if plain && key.len() + 2 <= STEP {
            length = key.len() as u32 + 2;
            quoted[0] = b'"';
            quoted[1..=key.len()].copy_from_slice(key.as_bytes());
            quoted[key.len() + 1] = b'"';
        }
        let object = &mut self.objects[object as usize];
        let before = object.last.replace(entry);
        object.by_name.insert(key.as_bytes().into(), entry);
        match before {
            Some(before) => self.entries[before as usize].next = entry,
            None => object.first = entry,
        }
        self.entries.push(Entry { quoted, length, target, next: entry });
    }
}

//! What a load is: everything that its rows depend on, so that the same load can be known again.

use coload_ddl::{Schema, create_table_sql, parse_create_table};
use coload_source::Dialect;
use coload_store::{DeleteWhere, LoadId, LoadMode, OnConflict};
use coload_transform::DictionaryPolicy;
use coload_types::bytes::{ByteReader, Checksum, put_bytes, put_varint};
use coload_types::calendar::{DATE_DAYS, DAY_MICROS};
use coload_types::{Error, Result};

use crate::conflicts::{DeleteText, parse_delete_where, put_delete_text, read_delete_text};
use crate::dialect::{put_dialect, read_dialect};
use crate::prints::{NamesAre, PRINT_BYTES_MIN, Prints};
use crate::rows::RowSource;
use crate::share::{Share, journal_of_share};
use crate::{CHUNK_BYTES_MAX, CHUNK_BYTES_MIN, RejectLimit};
use crate::{FRAGMENTS_MAX, read_text};

/// Most inputs of a load.
const INPUTS_MAX: usize = 1 << 20;

/// Flag of the mode: names stand without the folder of the one before.
const SHORT_NAMES: u8 = 128;
/// Flag of the mode: what happens to keys that are there stands behind the salt.
const CONFLICTS: u8 = 64;
/// Flag of the mode: which rows delete stands behind that.
const DELETES: u8 = 32;
/// Inputs whose names stand whole. A million names with their folders are longer than a message may be.
const WHOLE_NAMES_MAX: usize = 1000;
/// Bytes of a description that are hashed at once.
const HASHED_BYTES: usize = 64 << 10;
/// Room for what a description has beside its inputs; it grows if that is more.
const BYTES_BESIDE_INPUTS: usize = 4 << 10;
/// Inputs of which it is told how they differ.
const DIFFERENCES_MAX: usize = 20;

/// Flag of a description: the columns are inferred.
const INFERRED: u8 = 1;
/// Flag of a description: it tells where its inputs lie.
const ORIGIN: u8 = 32;
/// Flag of a description: it tells when the load began.
const BEGAN: u8 = 16;

/// Flag of a description: it is a share of a load of several workers.
const SHARE: u8 = 128;

/// What the client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Parses, and transforms what is placed with it.
    Partitions,
    /// Sends chunks of the inputs; the server loads while they arrive.
    Pipe,
    /// Sends the inputs; the server loads when they are there.
    Seq,
}

/// What a load is, as its client says it; the load's key is a hash of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadDescription {
    /// Name of the table.
    pub table: String,
    /// What happens to rows that are there.
    pub mode: LoadMode,
    /// What happens to keys of a PRIMARY KEY that are there.
    pub on_conflict: OnConflict,
    /// Which rows say that their keys go.
    pub delete_where: Option<DeleteText>,
    /// Columns of the table.
    pub schema: Schema,
    /// How its rows are made of records.
    pub rows: RowSource,
    /// When it began, microseconds since the epoch, if its client may want to know; the first attempt's counts.
    pub began_us: Option<i64>,
    /// Hash of the machine and the folders that its inputs lie in, if its client tells: inputs of the same names from
    /// elsewhere are other inputs, and no change of these.
    pub origin: Option<u64>,
    /// Where the columns come from.
    pub columns_are: ColumnsAre,
    /// Inputs of the load, in order, by what tells them from others.
    pub inputs: Prints,
    /// How the text is written.
    pub dialect: Dialect,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Fragments of a partition.
    pub fragments_per_partition: usize,
    /// When columns get dictionaries.
    pub dictionaries: DictionaryPolicy,
    /// Records that may be set aside before the load fails.
    pub max_rejects: RejectLimit,
    /// What the client does.
    pub work: Work,
    /// 0 for files; odd and random for streams, which are never the same again; even where somebody knows the load by a key.
    pub salt: u128,
    /// Which of several wanted loads of the same it is: 0 but for `--again`.
    pub again: Again,
    /// Which share of a load of several workers it is.
    pub share: Option<Share>,
}

/// Where the columns of a load come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnsAre {
    /// The user, or the table.
    Given,
    /// A sample of the inputs: their types may become wider while they are read.
    Inferred,
}

/// Whether a load that is published is loaded once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It is a no-op.
    No,
    /// It is loaded again.
    Yes,
}

/// Why a server that parses takes no program.
pub const PROGRAM_AT_SERVER: &str = "--where and --select: with --placement pipe and seq the server parses, and \
                                     it does not run them: take --placement adaptive, size, all or none";

/// Why a server that parses takes no share of a load.
pub const SHARE_AT_SERVER: &str = "--worker: with --placement pipe and seq the server parses, and it reads no splits of \
                                   inputs: take --placement adaptive, size, all or none";

/// Reads when a load began.
pub(crate) fn read_began(reader: &mut ByteReader<'_>) -> Result<i64> {
    let time = reader.u64()? as i64;
    match DATE_DAYS.contains(&time.div_euclid(DAY_MICROS)) {
        true => Ok(time),
        false => Err(Error::Corrupt(format!("a load that began at {time}"))),
    }
}

impl LoadDescription {
    /// Appends the description; without `again`, `began_us` and `origin`, which do not tell loads apart. `taken` is
    /// called from time to time, and may take what is there away: inputs may be many.
    fn put_identity(
        &self,
        out: &mut Vec<u8>,
        names: NamesAre,
        mut taken: impl FnMut(&mut Vec<u8>),
    ) {
        let mode = match self.mode {
            LoadMode::Append => 0,
            LoadMode::Replace => 1,
            LoadMode::Create => 2,
        };
        let names_are = if names == NamesAre::Short { SHORT_NAMES } else { 0 };
        let rule = if self.on_conflict == OnConflict::Error { 0 } else { CONFLICTS };
        let deletes = if self.delete_where.is_some() { DELETES } else { 0 };
        out.push(mode | names_are | rule | deletes);
        put_bytes(out, create_table_sql(&self.table, &self.schema).as_bytes());
        put_varint(out, self.inputs.len() as u64);
        for number in 0..self.inputs.len() {
            self.inputs.put(number, names, out);
            taken(out);
        }
        put_dialect(out, &self.dialect);
        put_varint(out, self.chunk_bytes as u64);
        put_varint(out, self.fragments_per_partition as u64);
        out.push(match self.dictionaries {
            // Scans are not sent to servers.
            DictionaryPolicy::Auto | DictionaryPolicy::ForScan => 0,
            DictionaryPolicy::Always => 1,
        });
        match self.max_rejects {
            RejectLimit::Count(count) => {
                out.push(0);
                put_varint(out, count);
            }
            RejectLimit::Percent(share) => {
                out.push(1);
                out.extend(share.to_bits().to_le_bytes());
            }
        }
        out.push(match self.work {
            Work::Partitions => 0,
            Work::Pipe => 1,
            Work::Seq => 2,
        });
        out.extend(self.salt.to_le_bytes());
        self.on_conflict.put(out);
        if let Some(delete_where) = &self.delete_where {
            put_delete_text(out, delete_where);
        }
    }

    /// Whether its inputs are streams that nobody can read again.
    pub fn comes_once(&self) -> bool {
        self.salt & 1 == 1
    }

    /// The id of this load, the `nth` of its kind; of a share that of its journal, whatever it reads.
    pub fn id(&self, nth: u64) -> LoadId {
        if let Some(Share { of, .. }) = &self.share {
            return journal_of_share(*of);
        }
        let (mut sum, mut bytes) = (Checksum::default(), Vec::new());
        self.put_identity(&mut bytes, NamesAre::Whole, |bytes| {
            if bytes.len() >= HASHED_BYTES {
                sum.add(bytes);
                bytes.clear();
            }
        });
        self.rows.put(&mut bytes);
        bytes.extend(nth.to_le_bytes());
        sum.add(&bytes);
        let low = sum.value();
        sum.add(&low.to_le_bytes());
        LoadId::from_u128(u128::from(sum.value()) << 64 | u128::from(low))
    }

    /// The description as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Appends the description as the bytes that are sent.
    pub fn put(&self, out: &mut Vec<u8>) {
        // What is not written takes no memory, and to grow step by step takes that of both at each step.
        out.reserve(self.inputs.bytes_at_most() + BYTES_BESIDE_INPUTS);
        let names = match self.inputs.len() > WHOLE_NAMES_MAX {
            true => NamesAre::Short,
            false => NamesAre::Whole,
        };
        self.put_identity(out, names, |_| ());
        out.push(u8::from(self.again == Again::Yes));
        let inferred = if self.columns_are == ColumnsAre::Inferred { INFERRED } else { 0 };
        let began = if self.began_us.is_some() { BEGAN } else { 0 };
        let origin = if self.origin.is_some() { ORIGIN } else { 0 };
        let share = if self.share.is_some() { SHARE } else { 0 };
        out.push(inferred | began | origin | share | self.rows.flags());
        self.rows.put(out);
        out.extend(self.began_us.iter().flat_map(|time| time.to_le_bytes()));
        out.extend(self.origin.iter().flat_map(|origin| origin.to_le_bytes()));
        if let Some(share) = &self.share {
            share.put(out);
        }
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt` when it is none, `Invalid` when the columns or the dialect are not possible.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(bytes);
        let wrong = |what: &str, value: u64| Error::Corrupt(format!("{what} {value} of a load"));
        let first = reader.u8()?;
        let names = if first & SHORT_NAMES == 0 { NamesAre::Whole } else { NamesAre::Short };
        let mode = match first & !(SHORT_NAMES | CONFLICTS | DELETES) {
            0 => LoadMode::Append,
            1 => LoadMode::Replace,
            2 => LoadMode::Create,
            other => return Err(wrong("mode", other.into())),
        };
        let (table, schema) = parse_create_table(&read_text(&mut reader)?)?;
        let count = reader.count(PRINT_BYTES_MIN)?;
        if count > INPUTS_MAX {
            return Err(wrong("inputs", count as u64));
        }
        let inputs = Prints::read(&mut reader, names, count)?;
        let dialect = read_dialect(&mut reader)?;
        let chunk_bytes = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk_bytes) {
            return Err(wrong("chunk bytes", chunk_bytes as u64));
        }
        let fragments_per_partition = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        if !(1..=FRAGMENTS_MAX).contains(&fragments_per_partition) {
            return Err(wrong("fragments", fragments_per_partition as u64));
        }
        let dictionaries = match reader.u8()? {
            0 => DictionaryPolicy::Auto,
            1 => DictionaryPolicy::Always,
            other => return Err(wrong("dictionaries", other.into())),
        };
        let max_rejects = match reader.u8()? {
            0 => RejectLimit::Count(reader.varint()?),
            1 => RejectLimit::Percent(f64::from_bits(reader.u64()?)),
            other => return Err(wrong("reject limit", other.into())),
        };
        let work = match reader.u8()? {
            0 => Work::Partitions,
            1 => Work::Pipe,
            2 => Work::Seq,
            other => return Err(wrong("work", other.into())),
        };
        let salt = reader.i128()? as u128;
        let on_conflict = match first & CONFLICTS {
            0 => OnConflict::Error,
            _ => OnConflict::read(&mut reader, schema.len())?,
        };
        let delete_where = match first & DELETES {
            0 => None,
            _ => Some(read_delete_text(&mut reader, schema.len())?),
        };
        let again = if reader.u8()? == 0 { Again::No } else { Again::Yes };
        let flags = reader.u8()?;
        let rows = RowSource::read(
            &mut reader,
            flags & !(INFERRED | BEGAN | ORIGIN | SHARE),
            &schema,
            inputs.len(),
        )?;
        let began_us = match flags & BEGAN {
            0 => None,
            _ => Some(read_began(&mut reader)?),
        };
        let origin = if flags & ORIGIN == 0 { None } else { Some(reader.u64()?) };
        let share = match flags & SHARE {
            0 => None,
            _ => Some(Share::read(&mut reader, inputs.len())?),
        };
        reader.finish()?;
        if work != Work::Partitions && share.is_some() {
            return Err(Error::Invalid(SHARE_AT_SERVER.into()));
        }
        if work != Work::Partitions && rows.program.is_some() {
            return Err(Error::Invalid(PROGRAM_AT_SERVER.into()));
        }
        Ok(LoadDescription {
            table,
            mode,
            on_conflict,
            delete_where,
            schema,
            rows,
            began_us,
            origin,
            columns_are: if flags & INFERRED != 0 {
                ColumnsAre::Inferred
            } else {
                ColumnsAre::Given
            },
            inputs,
            dialect,
            chunk_bytes,
            fragments_per_partition,
            dictionaries,
            max_rejects,
            work,
            salt,
            again,
            share,
        })
    }

    /// Which rows say that their keys go, where the columns of the table have these types.
    ///
    /// # Errors
    /// `Invalid` when what they say is no value of the column.
    pub fn delete_where(&self, schema: &Schema) -> Result<Option<DeleteWhere>> {
        self.delete_where.as_ref().map(|text| parse_delete_where(schema, text)).transpose()
    }

    /// This load with other types of its columns, as a client describes it who begins with these.
    #[must_use]
    pub fn with_types(&self, schema: &Schema) -> LoadDescription {
        let mut with = LoadDescription { schema: schema.clone(), ..self.clone() };
        if let Some(derivation) = &mut with.rows.derivation
            && let Ok(read) = derivation.read_as(schema)
        {
            derivation.read = read;
        }
        with
    }

    /// Whether `begun` is this load with narrower types, which were found too narrow.
    pub fn widens(&self, begun: &LoadDescription) -> bool {
        let derivation = begun.rows.derivation.clone();
        let same = LoadDescription {
            schema: begun.schema.clone(),
            rows: RowSource { derivation, ..self.rows.clone() },
            ..self.clone()
        };
        self.columns_are == ColumnsAre::Inferred
            && begun.columns_are == ColumnsAre::Inferred
            && same.id(0) == begun.id(0)
    }

    /// Names of the first inputs, at most so many; that of an input of which parts are read once.
    pub fn input_names(&self, most: usize) -> Vec<String> {
        let parts = self.share.as_ref().map_or(&[][..], |share| &share.parts);
        let input = |number: usize| parts.get(number).map(|part| part.input);
        // Parts of an input follow each other.
        let is_first = |number: &usize| {
            *number == 0 || input(*number).is_none() || input(*number) != input(number - 1)
        };
        let first = (0..self.inputs.len()).filter(is_first).take(most);
        first.map(|number| self.inputs.names().get(number)).collect()
    }

    /// In what this load of the same inputs differs from one that was begun before.
    pub fn differences(&self, begun: &LoadDescription) -> Vec<String> {
        let mut found = Vec::new();
        for (now, then) in self.inputs.iter().zip(begun.inputs.iter()) {
            if found.len() >= DIFFERENCES_MAX {
                found.push("further inputs, which are not looked at".to_owned());
                break;
            }
            if now.bytes != then.bytes {
                let (now_bytes, then_bytes) = (now.bytes, then.bytes);
                found.push(format!("{} has {now_bytes} bytes and had {then_bytes}", now.name));
            } else if now.ends != then.ends {
                found.push(format!("{} has other bytes", now.name));
            } else if now.modified_us != then.modified_us {
                found.push(format!("{} was written since", now.name));
            }
        }
        found.extend(self.rows.differences(&begun.rows));
        let by_input = self.rows.by_input == begun.rows.by_input;
        let mut differ = |what: &str, same: bool| {
            if !same {
                found.push(format!("{what} differs"));
            }
        };
        differ("--union-by-name", by_input);
        differ("--chunk-size", self.chunk_bytes == begun.chunk_bytes);
        let fragments = self.fragments_per_partition == begun.fragments_per_partition;
        differ("--fragments-per-partition or --memory", fragments);
        differ("--dictionaries", self.dictionaries == begun.dictionaries);
        differ("--placement", self.work == begun.work);
        found.extend(self.other_rows(begun));
        found
    }

    /// In what the rows of the same inputs differ, or what becomes of them.
    pub(crate) fn other_rows(&self, begun: &LoadDescription) -> Vec<String> {
        let rows = self.rows.derivation == begun.rows.derivation;
        let same = [
            ("--append, --replace or --create", self.mode == begun.mode),
            ("the columns", self.schema == begun.schema),
            ("--map, --by-name or --set", rows && self.rows.fields == begun.rows.fields),
            ("the dialect", self.dialect == begun.dialect),
            ("--max-rejects", self.max_rejects == begun.max_rejects),
            ("--on-conflict", self.on_conflict == begun.on_conflict),
            ("--delete-where", self.delete_where == begun.delete_where),
        ];
        let differ = same.iter().filter(|(_, same)| !same);
        differ.map(|(what, _)| format!("{what} differs")).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::FieldMap;
    use crate::FieldsByInput;
    use crate::InputPrint;
    use crate::RowSql;
    use crate::{ColumnFrom, Derivation};
    use coload_ddl::parse_columns;
    use coload_source::{FixedWidths, InputFields};
    use coload_types::Value;
    use coload_types::bytes::checksum;
    use std::sync::Arc;

    fn description() -> LoadDescription {
        let input = InputPrint { name: "a".into(), bytes: 9, modified_us: -1, ends: 3 };
        LoadDescription {
            table: "T x".into(),
            mode: LoadMode::Replace,
            on_conflict: OnConflict::Newest(1),
            delete_where: Some((3, "gone".into())),
            schema: parse_columns(
                "a BIGINT, \"B c\" VARCHAR(5) DEFAULT 'x', c DATE, d VARCHAR, e INTEGER",
            )
            .unwrap(),
            rows: RowSource {
                program: None,
                derivation: Some(Derivation {
                    read: parse_columns("a BIGINT").unwrap(),
                    columns: vec![
                        ColumnFrom::Read(0),
                        ColumnFrom::Constant(Some(Value::Bytes((*b"x").into()))),
                        ColumnFrom::LoadTime,
                        ColumnFrom::InputName,
                        ColumnFrom::Partition("year".into()),
                    ],
                }),
                fields: Some(FieldMap { count: 3, of_column: vec![2] }),
                by_input: None,
            },
            began_us: Some(1_700_000_000_000_000),
            origin: Some(7),
            columns_are: ColumnsAre::Inferred,
            inputs: [input].into_iter().collect(),
            dialect: Dialect {
                skip: 3,
                comment: Some(b'#'),
                fixed: Some(FixedWidths::parse("1-3,7-").unwrap()),
                ..Dialect::default()
            },
            chunk_bytes: 1 << 20,
            fragments_per_partition: 50,
            dictionaries: DictionaryPolicy::Always,
            max_rejects: RejectLimit::Percent(0.5),
            work: Work::Pipe,
            salt: 77,
            again: Again::Yes,
            share: None,
        }
    }

    #[test]
    fn a_description_comes_back_with_its_id() {
        let same = LoadDescription::decode(&description().encode()).unwrap();
        assert_eq!(same, description());
        assert_eq!(same.id(0), description().id(0));
        assert_ne!(same.id(0), same.id(1));
        let other = LoadDescription { again: Again::No, ..same.clone() };
        assert_eq!(other.id(0), same.id(0));
        let mut other = same.clone();
        let changed = other.inputs.iter().map(|input| InputPrint { ends: 4, ..input });
        other.inputs = changed.collect();
        assert_ne!(other.id(0), same.id(0));
        assert_eq!(other.differences(&same), ["a has other bytes"]);
        let later = LoadDescription { began_us: Some(0), ..same.clone() };
        assert_eq!(later.id(0), same.id(0));
        let bytes = same.encode();
        for cut in 0..bytes.len() {
            assert!(LoadDescription::decode(&bytes[..cut]).is_err());
        }
    }

    /// Symptom: the names of a million files, with a folder each, were 83 MB: more than a server of 256 MiB takes at once.
    #[test]
    fn many_inputs_say_their_folder_once_and_are_the_same_load() {
        let folder = "warehouse-export-2026-11-23/lineitem/";
        let name = |n: usize| match n {
            7 => "elsewhere.csv".to_owned(),
            8 => format!("{}/a.csv", "x".repeat(5000)),
            9 => format!("{}/b.csv", "x".repeat(5000)),
            _ => format!("{folder}part-{n:07}.csv"),
        };
        let input = |n| InputPrint { name: name(n), bytes: 9, modified_us: 4, ends: n as u64 };
        let of =
            |count| LoadDescription { inputs: (0..count).map(input).collect(), ..description() };
        let many = of(WHOLE_NAMES_MAX + 1);
        let bytes = many.encode();
        assert_eq!(LoadDescription::decode(&bytes).unwrap(), many);
        assert!(bytes.len() < 12_000 + 40 * many.inputs.len(), "{}", bytes.len());
        for cut in (0..bytes.len()).step_by(97) {
            assert!(LoadDescription::decode(&bytes[..cut]).is_err());
        }
        // The id is that of the whole names, as an older client has it.
        let mut whole = Vec::new();
        many.put_identity(&mut whole, NamesAre::Whole, |_| ());
        many.rows.put(&mut whole);
        whole.extend(0_u64.to_le_bytes());
        let low = checksum(&whole);
        assert_eq!(many.id(0).as_u128() as u64, low);
        let few = of(WHOLE_NAMES_MAX);
        assert_eq!(LoadDescription::decode(&few.encode()).unwrap(), few);
        assert!(few.encode()[0] < SHORT_NAMES);
    }

    #[test]
    fn a_filter_is_part_of_a_load_and_a_server_that_parses_takes_none() {
        let of = |filter: Option<&str>, select: Option<&str>| {
            let program = RowSql { filter: filter.map(Into::into), select: select.map(Into::into) };
            let mut of = description();
            of.rows.program = Some(program);
            of.work = Work::Partitions;
            of
        };
        let one = of(Some("a > 1"), None);
        assert_eq!(LoadDescription::decode(&one.encode()).unwrap(), one);
        let both = of(Some("a > 1"), Some("a"));
        assert_eq!(LoadDescription::decode(&both.encode()).unwrap(), both);
        assert_ne!(one.id(0), of(None, Some("a > 1")).id(0));
        assert_eq!(
            both.differences(&of(Some("a > 2"), None)),
            ["--where is \"a > 1\" and was \"a > 2\"", "--select is \"a\" and was not given"]
        );
        let piped = LoadDescription { work: Work::Pipe, ..both };
        let error = LoadDescription::decode(&piped.encode()).unwrap_err();
        assert!(error.to_string().contains("--placement adaptive"), "{error}");
    }

    #[test]
    fn the_fields_of_each_input_come_back() {
        let mut of = description();
        let way = |count, field| InputFields { count, of_column: vec![field] };
        let fields = FieldsByInput {
            ways: vec![way(3, Some(2)), way(1, None), way(2, Some(0))],
            of_input: vec![2, 0, 1, 0],
        };
        let first = of.inputs.iter().next().unwrap();
        of.inputs = vec![first; 4].into_iter().collect();
        of.rows.fields = None;
        of.rows.by_input = Some(Arc::new(fields.clone()));
        let bytes = of.encode();
        assert_eq!(LoadDescription::decode(&bytes).unwrap(), of);
        for cut in 0..bytes.len() {
            assert!(LoadDescription::decode(&bytes[..cut]).is_err());
        }
        let mut other = of.clone();
        let of_input = vec![2, 0, 1, 1];
        other.rows.by_input = Some(Arc::new(FieldsByInput { of_input, ..fields.clone() }));
        assert_ne!(other.id(0), of.id(0));
        assert_eq!(other.differences(&of), ["--union-by-name differs"]);
        for wrong in [
            FieldsByInput { of_input: vec![2, 0, 1], ..fields.clone() },
            FieldsByInput { of_input: vec![2, 0, 1, 3], ..fields.clone() },
            FieldsByInput { ways: Vec::new(), of_input: Vec::new() },
            FieldsByInput { ways: vec![way(2, Some(2))], of_input: Vec::new() },
            FieldsByInput { ways: vec![way(usize::MAX, Some(2))], of_input: Vec::new() },
        ] {
            other.rows.by_input = Some(Arc::new(wrong));
            let error = LoadDescription::decode(&other.encode()).unwrap_err();
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
        }
    }

    #[test]
    fn a_time_that_is_none_is_refused() {
        let odd = LoadDescription { began_us: Some(i64::MAX), ..description() };
        assert!(LoadDescription::decode(&odd.encode()).is_err());
        let old = LoadDescription { began_us: None, ..description() };
        assert_eq!(LoadDescription::decode(&old.encode()).unwrap(), old);
    }
}

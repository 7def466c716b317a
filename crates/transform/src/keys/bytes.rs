//! Keys that are bytes, divided into buckets as they come and sorted in parts that threads may share.
//!
//! ```text
//!   sample     some keys, sorted: the splitters that buckets are between
//!   buckets    < splitter | = splitter | > splitter, < next | ..       head key | head key | ..  in the order in which they came
//!   sorted     each bucket by itself, in the cache; all of its keys begin as the splitters beside it both do
//! ```
//!
//! Keys that are a splitter are known: only their rows are kept, so that a key of a million rows takes four bytes for each. Rows of
//! equal keys keep their order.
//!
//! Where all keys take too much memory they are divided in passes, some buckets in each: whoever has the keys gives all of them
//! in each pass, and those of other buckets are passed over.
//!
//! Cost: a key takes its bytes and 5 more, 8 if it is long; while its bucket is sorted 16 more.
//!
//! Source: Frazer and McKellar, Samplesort, Journal of the ACM 17(3), 1970.

use std::cmp::Ordering;
use std::ops::Range;

use super::KeyOrder;

/// Bytes that a bucket should have: it and what sorts it are in a cache of the second level.
const BUCKET_BYTES: u64 = 256 << 10;
/// Most splitters: as many places are written to in turn.
const SPLITTERS_MAX: u64 = 1 << 10;
/// Keys of a sample for each splitter: with so many the largest bucket is about twice the mean.
const SAMPLED_KEYS: u64 = 16;
/// Bytes of a sample, and of a key in it at least: of a longer one its beginning is taken.
const SAMPLE_BYTES: u64 = 8 << 20;
const SAMPLE_KEY_BYTES: u64 = 64;
/// Share of what a bucket is expected to have that it has room for besides, before its keys come, and most bytes of that room.
const ROOM_SHARE: u64 = 4;
const ROOM_BYTES_MAX: u64 = 4 * BUCKET_BYTES;
/// Bytes of a key that are compared as a number.
const FIRST_BYTES: usize = 8;
/// Bytes of the number of a row.
const ROW_BYTES: usize = 4;
/// The length of a key takes a byte; this says that it follows in four.
const LONG: u8 = u8::MAX;

/// Some of the keys that are to be sorted.
#[derive(Debug)]
pub struct KeySample {
    keys: Vec<Sampled>,
    key_bytes_max: usize,
    /// Bytes of the keys that were taken.
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sampled {
    key: Box<[u8]>,
    /// Whether it is the whole key.
    is_whole: bool,
}

impl KeySample {
    /// A sample of about so many keys.
    pub fn new(wanted: u64) -> Self {
        let bytes = (SAMPLE_BYTES / wanted.max(1)).max(SAMPLE_KEY_BYTES);
        KeySample { keys: Vec::new(), key_bytes_max: bytes as usize, bytes: 0 }
    }

    /// How many keys should be taken of so many, which have so many bytes.
    pub fn wanted(rows: u64, bytes: u64) -> u64 {
        let splitters = (bytes / BUCKET_BYTES).clamp(1, SPLITTERS_MAX);
        (splitters * SAMPLED_KEYS).min(rows)
    }

    /// Takes a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes += (key.len() + ROW_BYTES + 1) as u64;
        let is_whole = key.len() <= self.key_bytes_max;
        self.keys.push(Sampled { key: key[..key.len().min(self.key_bytes_max)].into(), is_whole });
    }

    /// Whether the keys came in order, as far as they are known.
    pub fn is_in_order(&self) -> bool {
        self.keys.is_sorted()
    }

    /// Takes what another sample has.
    pub fn append(&mut self, mut other: KeySample) {
        self.keys.append(&mut other.keys);
        self.bytes += other.bytes;
    }
}

/// The keys that buckets are between.
#[derive(Debug)]
pub struct Splitters {
    /// What they all begin with.
    start: Box<[u8]>,
    /// The first bytes after that, as numbers.
    firsts: Vec<u64>,
    splitters: Vec<Sampled>,
    /// Bytes that the keys of each bucket have, about.
    bucket_bytes: Vec<u64>,
}

impl Splitters {
    /// Splitters for so many rows, of whose keys this is a sample.
    pub fn of(sample: KeySample, rows: u64) -> Self {
        let KeySample { mut keys, bytes, .. } = sample;
        let (count, mean) = (keys.len() as u64, bytes / (keys.len() as u64).max(1));
        let all = mean.saturating_mul(rows);
        keys.sort_unstable();
        let wanted = (all / BUCKET_BYTES).clamp(1, SPLITTERS_MAX).min(count / SAMPLED_KEYS + 1);
        let mut chosen: Vec<bool> = vec![false; keys.len()];
        for number in 1..=wanted {
            if let Some(chosen) = chosen.get_mut((number * count / (wanted + 1)) as usize) {
                *chosen = true;
            }
        }
        let mut splitters: Vec<Sampled> = Vec::new();
        // Keys of the sample that are less than each splitter, and those that are it.
        let mut counts: Vec<u64> = vec![0];
        let mut numbered = keys.into_iter().zip(chosen).peekable();
        while let Some((key, mut is_chosen)) = numbered.next() {
            let mut same = 1;
            while let Some((_, other)) = numbered.next_if(|(next, _)| *next == key) {
                is_chosen |= other;
                same += 1;
            }
            match is_chosen {
                true => {
                    // Keys that begin as one does of which only that is known come after it.
                    counts.extend(if key.is_whole { [same, 0] } else { [0, same] });
                    splitters.push(key);
                }
                false => counts.iter_mut().last().into_iter().for_each(|count| *count += same),
            }
        }
        let shared = match (splitters.first(), splitters.last()) {
            (Some(first), Some(last)) => shared_bytes(&first.key, &last.key),
            _ => 0,
        };
        let start: Box<[u8]> = splitters.first().map_or(&[][..], |s| &s.key[..shared]).into();
        let firsts = splitters.iter().map(|splitter| number(&splitter.key[shared..])).collect();
        let of_bucket = |(bucket, sampled): (usize, u64)| match bucket % 2 {
            1 => sampled * (rows / count.max(1)).max(1) * ROW_BYTES as u64,
            _ => (all / count.max(1)).saturating_mul(sampled),
        };
        let bucket_bytes = counts.into_iter().enumerate().map(of_bucket).collect();
        Splitters { start, firsts, splitters, bucket_bytes }
    }

    /// How many buckets there are; each has lesser keys than the next.
    pub fn buckets(&self) -> usize {
        self.bucket_bytes.len()
    }

    /// The buckets of each pass, if so many bytes may be in memory at once.
    pub fn passes(&self, bytes_max: u64) -> Vec<Range<usize>> {
        let (mut passes, mut start, mut bytes) = (Vec::new(), 0, 0u64);
        for (bucket, more) in self.bucket_bytes.iter().enumerate() {
            if bucket > start && bytes.saturating_add(*more) > bytes_max {
                passes.push(start..bucket);
                (start, bytes) = (bucket, 0);
            }
            bytes += more;
        }
        passes.push(start..self.buckets());
        passes
    }

    /// The bucket that a key is in.
    #[inline]
    fn bucket_of(&self, key: &[u8]) -> usize {
        let shared = self.start.len();
        let rest = match key.get(..shared).filter(|start| **start == *self.start) {
            Some(_) => &key[shared..],
            None if *key < *self.start => return 0,
            None => return self.buckets() - 1,
        };
        let first = number(rest);
        let mut low = self.firsts.partition_point(|splitter| *splitter < first);
        let mut high = low + self.firsts[low..].partition_point(|splitter| *splitter == first);
        while low < high {
            let middle = low + (high - low) / 2;
            let splitter = &self.splitters[middle];
            match rest.cmp(&splitter.key[shared..]) {
                Ordering::Less => high = middle,
                Ordering::Equal if splitter.is_whole => return 2 * middle + 1,
                Ordering::Equal | Ordering::Greater => low = middle + 1,
            }
        }
        2 * low
    }

    /// The key of a bucket whose keys are all the same.
    fn key_of(&self, bucket: usize) -> Option<&[u8]> {
        (bucket % 2 == 1).then(|| &*self.splitters[bucket / 2].key)
    }

    /// Bytes that all keys of a bucket begin with: those that the splitters beside it both do.
    fn shared_in(&self, bucket: usize) -> usize {
        let after = bucket / 2;
        match (after.checked_sub(1), self.splitters.get(after)) {
            (Some(before), Some(after)) => shared_bytes(&self.splitters[before].key, &after.key),
            _ => 0,
        }
    }
}

/// The first bytes as a number that is ordered as they are.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<FIRST_BYTES>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; FIRST_BYTES];
            first[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(first)
        }
    }
}

/// How many bytes two keys begin with alike.
pub fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Keys of some rows in buckets.
#[derive(Debug)]
pub struct KeyPart<'a> {
    splitters: &'a Splitters,
    /// The buckets whose keys are kept.
    pass: Range<usize>,
    buckets: Vec<Vec<u8>>,
    /// What all keys that came begin with, those of other buckets among them.
    shared: Option<Vec<u8>>,
}

impl<'a> KeyPart<'a> {
    /// Without rows, for a pass; one of so many parts, which have about as many each.
    pub fn new(splitters: &'a Splitters, pass: Range<usize>, parts: usize) -> Self {
        // Room that is not touched costs nothing. Buckets grow together: what each left when it grew is too small for the others, and all of
        // them would leave as much as they have.
        let room = |bucket: usize| {
            let bytes = splitters.bucket_bytes[bucket] / parts.max(1) as u64;
            Vec::with_capacity((bytes + bytes / ROOM_SHARE).min(ROOM_BYTES_MAX) as usize)
        };
        let buckets = pass.clone().map(room).collect();
        KeyPart { splitters, pass, buckets, shared: None }
    }

    /// What all keys that came begin with; `None` when none came.
    pub fn shared(&self) -> Option<&[u8]> {
        self.shared.as_deref()
    }

    /// Takes the key of a row, which comes after those that were taken.
    #[inline]
    pub fn push(&mut self, row: u32, key: &[u8]) {
        match &mut self.shared {
            Some(shared) if key.starts_with(shared) => {}
            Some(shared) => shared.truncate(shared_bytes(shared, key)),
            none => *none = Some(key.to_vec()),
        }
        let bucket = self.splitters.bucket_of(key);
        if !self.pass.contains(&bucket) {
            return;
        }
        let to = &mut self.buckets[bucket - self.pass.start];
        to.extend_from_slice(&row.to_le_bytes());
        if bucket % 2 == 1 {
            return;
        }
        match u8::try_from(key.len()) {
            Ok(length) if length != LONG => to.push(length),
            _ => {
                to.push(LONG);
                to.extend_from_slice(&(key.len() as u32).to_le_bytes());
            }
        }
        to.extend_from_slice(key);
    }
}

/// The keys of a bucket in order.
#[derive(Debug)]
pub struct SortedKeys<'a> {
    /// The key that all of them are, if they are.
    key: Option<&'a [u8]>,
    parts: Vec<&'a [u8]>,
    /// What a key begins with as a number, and where its head is.
    keys: Vec<(u64, Place)>,
}

/// Where a head is: which part, and which byte of it.
type Place = (u32, u32);

/// The row and the key at a place.
#[inline]
fn at<'a>(parts: &[&'a [u8]], (part, byte): Place) -> (u32, &'a [u8]) {
    let bytes = &parts[part as usize][byte as usize..];
    let row = bytes.first_chunk().map_or(0, |row| u32::from_le_bytes(*row));
    match bytes.get(ROW_BYTES) {
        None => (row, &[]),
        Some(&LONG) => {
            let length = bytes[ROW_BYTES + 1..].first_chunk();
            let length = length.map_or(0, |length| u32::from_le_bytes(*length)) as usize;
            (row, &bytes[2 * ROW_BYTES + 1..][..length])
        }
        Some(length) => (row, &bytes[ROW_BYTES + 1..][..usize::from(*length)]),
    }
}

/// Bytes of the head of a key and the key.
#[inline]
fn bytes_of(key: &[u8]) -> usize {
    ROW_BYTES + 1 + if key.len() >= usize::from(LONG) { ROW_BYTES } else { 0 } + key.len()
}

/// Most bytes of a bucket in a part.
pub const BUCKET_BYTES_MAX: usize = u32::MAX as usize;

/// Sorts a bucket of which these are the parts, in the order of the rows. `None` when it has over [`BUCKET_BYTES_MAX`].
pub fn sort_bucket<'a>(parts: &'a [KeyPart<'a>], bucket: usize) -> Option<SortedKeys<'a>> {
    let first = parts.first();
    let splitters = first.map(|part| part.splitters);
    let bytes: Vec<&[u8]> =
        parts.iter().map(|part| &part.buckets[bucket - part.pass.start][..]).collect();
    if bytes.iter().any(|part| part.len() > BUCKET_BYTES_MAX) {
        return None;
    }
    let key = splitters.and_then(|splitters| splitters.key_of(bucket));
    let mut keys: Vec<(u64, Place)> = Vec::new();
    if key.is_some() {
        return Some(SortedKeys { key, parts: bytes, keys });
    }
    let shared = splitters.map_or(0, |splitters| splitters.shared_in(bucket));
    for (part, all) in bytes.iter().enumerate() {
        let mut byte = 0;
        while byte < all.len() {
            let place = (part as u32, byte as u32);
            let (_, key) = at(&bytes, place);
            keys.push((number(key.get(shared..).unwrap_or_default()), place));
            byte += bytes_of(key);
        }
    }
    sort_from(&mut keys, &bytes, shared);
    Some(SortedKeys { key: None, parts: bytes, keys })
}

/// Keys that begin alike from which on their next bytes are compared as numbers, too; of fewer the whole rests are.
const ALIKE_MIN: usize = 8;
/// Most bytes of a key that are compared as numbers.
const NUMBERED_BYTES_MAX: usize = 256;

/// Sorts keys that are alike up to a byte, and whose next bytes are there as numbers. Equal ones stay in the order in which they came.
fn sort_from(keys: &mut [(u64, Place)], parts: &[&[u8]], byte: usize) {
    keys.sort_by_key(|(first, _)| *first);
    let next = byte + FIRST_BYTES;
    let rest = |place: Place| at(parts, place).1.get(next..).unwrap_or_default();
    for alike in keys.chunk_by_mut(|(a, _), (b, _)| a == b) {
        // What ends here is told apart by its length alone.
        let goes_on = alike.len() >= ALIKE_MIN
            && next < NUMBERED_BYTES_MAX
            && alike.iter().all(|(_, place)| !rest(*place).is_empty());
        if goes_on {
            alike.iter_mut().for_each(|(first, place)| *first = number(rest(*place)));
            sort_from(alike, parts, next);
        } else if alike.len() > 1 {
            // Bytes that are not there are zeros in numbers, and less than zeros that are.
            let end = |place: Place| at(parts, place).1.get(byte..).unwrap_or_default();
            alike.sort_by(|(_, a), (_, b)| end(*a).cmp(end(*b)));
        }
    }
}

impl SortedKeys<'_> {
    /// Calls with each key and its row, in order.
    ///
    /// # Errors
    /// Those of the call.
    pub fn for_each<E>(&self, mut each: impl FnMut(&[u8], u32) -> Result<(), E>) -> Result<(), E> {
        match self.key {
            Some(key) => {
                let mut rows = self.parts.iter().flat_map(|part| part.as_chunks().0);
                rows.try_for_each(|row| each(key, u32::from_le_bytes(*row)))
            }
            None => self.keys.iter().try_for_each(|(_, place)| {
                let (row, key) = at(&self.parts, *place);
                each(key, row)
            }),
        }
    }

    /// The order of the rows of the bucket; places are counted from its first on.
    pub fn order(&self) -> KeyOrder {
        let (mut rows, mut repeated) = (Vec::new(), Vec::new());
        if self.key.is_some() {
            for part in &self.parts {
                rows.extend(part.as_chunks().0.iter().map(|row| u32::from_le_bytes(*row)));
            }
            repeated.extend(1..rows.len() as u32);
            return KeyOrder { rows: Some(rows), repeated };
        }
        rows.reserve(self.keys.len());
        let mut before: Option<(u64, &[u8])> = None;
        for (place, (first, at_place)) in self.keys.iter().enumerate() {
            let (row, key) = at(&self.parts, *at_place);
            if before.is_some_and(|before| before == (*first, key)) {
                repeated.push(place as u32);
            }
            before = Some((*first, key));
            rows.push(row);
        }
        KeyOrder { rows: Some(rows), repeated }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    /// The order of keys, made in parts of so many rows and in passes of at most so many bytes.
    fn order_of(
        keys: &[Vec<u8>],
        (sampled, part_rows): (usize, usize),
        bytes_max: u64,
    ) -> KeyOrder {
        let mut sample = KeySample::new(keys.len() as u64);
        keys.iter().step_by(sampled).for_each(|key| sample.push(key));
        // As many splitters as a sample of more keys would give.
        let splitters = Splitters::of(sample, keys.len() as u64);
        let mut order = KeyOrder { rows: Some(Vec::new()), repeated: Vec::new() };
        let passes = splitters.passes(bytes_max);
        assert_eq!(passes.iter().map(Range::len).sum::<usize>(), splitters.buckets());
        for pass in passes {
            let mut parts = Vec::new();
            for (number, some) in keys.chunks(part_rows).enumerate() {
                let mut part =
                    KeyPart::new(&splitters, pass.clone(), keys.len().div_ceil(part_rows));
                for (row, key) in some.iter().enumerate() {
                    part.push((number * part_rows + row) as u32, key);
                }
                parts.push(part);
            }
            for bucket in pass {
                let sorted = sort_bucket(&parts, bucket).unwrap();
                let mut told = Vec::new();
                sorted
                    .for_each(|key, row| {
                        assert_eq!(keys[row as usize], key);
                        told.push(row);
                        Ok::<(), ()>(())
                    })
                    .unwrap();
                let of_bucket = sorted.order();
                assert_eq!(of_bucket.rows.as_ref(), Some(&told));
                order.append(of_bucket);
            }
        }
        order
    }

    fn check(keys: &[Vec<u8>]) {
        let mut wanted: Vec<u32> = (0..keys.len() as u32).collect();
        wanted.sort_by_key(|row| &keys[*row as usize]);
        let key = |place: u32| &keys[wanted[place as usize] as usize];
        let repeated: Vec<u32> =
            (1..keys.len() as u32).filter(|place| key(*place) == key(place - 1)).collect();
        for (sampled, part_rows, bytes_max) in
            [(1, usize::MAX, u64::MAX), (3, 7, 1000), (50, 100, 1)]
        {
            let part_rows = part_rows.min(keys.len().max(1));
            let found = order_of(keys, (sampled, part_rows), bytes_max);
            assert!(found.rows.as_ref() == Some(&wanted), "{sampled} {part_rows} {bytes_max}");
            assert!(found.repeated == repeated, "{sampled} {part_rows} {bytes_max}");
        }
    }

    proptest! {
        #[test]
        fn keys_are_sorted_as_bytes_and_equal_ones_keep_their_order(
            keys in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(b'a'), Just(255)], 0..12),
                    "start of all[ab]{0,9}".prop_map(String::into_bytes),
                ],
                0..200,
            ),
        ) {
            check(&keys);
        }
    }

    /// So many keys that there are many splitters, which come in no order, in order, in reverse, few times, begin alike for 4 KiB.
    #[test]
    fn many_keys_are_divided() {
        fn drawn(row: usize) -> u64 {
            (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
        }
        type KeyOf = fn(usize) -> Vec<u8>;
        let keys: [(KeyOf, usize); 6] = [
            (|row| format!("{:x} and more", drawn(row)).into_bytes(), 60_000),
            (|row| format!("https://example.com/{:x}", drawn(row) % 30_000).into_bytes(), 60_000),
            (|row| format!("{row:09}").into_bytes(), 60_000),
            (|row| format!("{:09}", 1_000_000 - row).into_bytes(), 60_000),
            (
                |row| {
                    [&b"a value of many rows"[..], if drawn(row) % 9 == 1 { b"!" } else { b"" }]
                        .concat()
                },
                60_000,
            ),
            (|row| [&vec![b'x'; 4096][..], &drawn(row).to_be_bytes()].concat(), 1_500),
        ];
        for (key, rows) in keys {
            check(&(0..rows).map(key).collect::<Vec<_>>());
        }
    }

    /// Buckets of shuffled keys grew together, and left as much memory as they have: 25 MiB of a pass took 50.
    #[test]
    fn buckets_of_shuffled_keys_have_the_room_that_they_need() {
        let drawn = |row: usize| (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let key = |row: usize| format!("order-{:016x}-{row:07}", drawn(row)).into_bytes();
        let rows = 200_000;
        let wanted = KeySample::wanted(rows as u64, rows as u64 * 30);
        let mut sample = KeySample::new(wanted);
        (0..rows).step_by(rows / wanted as usize).for_each(|row| sample.push(&key(row)));
        let splitters = Splitters::of(sample, rows as u64);
        assert!(splitters.buckets() > 40);
        let mut part = KeyPart::new(&splitters, 0..splitters.buckets(), 1);
        let room: Vec<usize> = part.buckets.iter().map(Vec::capacity).collect();
        (0..rows).for_each(|row| part.push(row as u32, &key(row)));
        let bytes: usize = part.buckets.iter().map(Vec::len).sum();
        let of_grown =
            part.buckets.iter().zip(&room).filter(|(bucket, room)| bucket.capacity() > **room);
        let grown: usize = of_grown.map(|(bucket, _)| bucket.len()).sum();
        assert!(grown < bytes / 4, "{grown} of {bytes} bytes are in buckets that grew");
        assert!(room.iter().sum::<usize>() < bytes / 2 * 3, "{bytes} bytes");
    }

    #[test]
    fn a_key_of_many_rows_takes_four_bytes_a_row() {
        let keys: Vec<Vec<u8>> = (0..50_000).map(|_| vec![b'v'; 1000]).collect();
        let mut sample = KeySample::new(KeySample::wanted(50_000, 50_000_000));
        keys.iter().step_by(10).for_each(|key| sample.push(key));
        let splitters = Splitters::of(sample, 50_000);
        assert_eq!(splitters.passes(1 << 20).len(), 1);
        let mut part = KeyPart::new(&splitters, 0..splitters.buckets(), 1);
        keys.iter().enumerate().for_each(|(row, key)| part.push(row as u32, key));
        assert_eq!(part.buckets.iter().map(Vec::len).sum::<usize>(), 4 * 50_000);
    }
}

#![allow(clippy::unwrap_used)]
use super::*;
use crate::batch::{Batch, BatchLayout, Codec};
use crate::types::Composite;
use crate::value::Scalar;

/// Most rows of a batch.
const ROWS: u64 = i32::MAX as u64;
const INT: ArrowType = ArrowType::Int { width: 4, signed: true };

fn field(values: ArrowType, encoding: Encoding, children: Vec<Field>) -> Field {
    Field { name: "f".to_owned(), nullable: true, values, encoding, children }
}

fn plain(values: ArrowType) -> Field {
    field(values, Encoding::Plain, Vec::new())
}

fn runs_of(values: ArrowType) -> Field {
    let encoding = Encoding::Runs(IntType { width: 4, signed: true });
    field(values.clone(), encoding, vec![plain(INT), plain(values)])
}

/// Buffers behind each other.
struct Given {
    batch: Batch,
    body: Vec<u8>,
}

impl Given {
    fn new(nodes: &[(u64, u64)], buffers: &[&[u8]], variadic: &[u64]) -> Self {
        let ends = buffers.iter().scan(0, |end, buffer| {
            let start = *end;
            *end += buffer.len() as u64;
            Some((start, buffer.len() as u64))
        });
        let places = ends.collect();
        let batch = Batch::of(nodes[0].0, nodes.to_vec(), places, variadic.to_vec());
        Given { batch, body: buffers.concat() }
    }

    fn compressed(mut self, codec: Codec) -> Self {
        self.batch.codec = Some(codec);
        self
    }

    fn read(&self, field: &Field, rows: Range<u64>, bytes_max: u64) -> Result<Slice<'_>> {
        let layout = BatchLayout::new([field], &self.batch)?;
        let buffers = Buffers::new(&self.batch, &self.body, bytes_max);
        read_slice(field, &layout.fields[0], &buffers, rows)
    }

    fn is_damaged(&self, field: &Field) -> bool {
        let rows = self.batch.rows;
        matches!(self.read(field, 0..rows, 1 << 20), Err(Fault::Damaged(_)))
    }
}

fn ints(ints: &[i32]) -> Vec<u8> {
    ints.iter().flat_map(|int| int.to_le_bytes()).collect()
}

/// A run of all rows is 8 bytes in a file: the rows took 8 GiB.
#[test]
fn rows_of_runs_count_before_they_are_made() {
    let given = Given::new(
        &[(ROWS, 0), (1, 0), (1, 0)],
        &[&[], &ints(&[ROWS as i32]), &[], &ints(&[7])],
        &[],
    );
    let field = runs_of(INT);
    assert!(matches!(given.read(&field, 0..ROWS, 1 << 20), Err(Fault::TooLarge(_))));
    let some = given.read(&field, ROWS - 1000..ROWS, 1 << 20).unwrap();
    assert_eq!(some.rows, 1000);
    assert_eq!(some.get(&INT, 999), Some(Scalar::Number(7, 0)));
}

#[test]
fn runs_that_do_not_rise_to_the_last_row_are_damage() {
    let field = runs_of(INT);
    for ends in [&[2, 1, 4][..], &[2, 2, 4], &[0, 2, 4], &[-1, 2, 4], &[1, 2, 3], &[4, i32::MIN, 5]]
    {
        let given =
            Given::new(&[(4, 0), (3, 0), (3, 0)], &[&[], &ints(ends), &[], &ints(&[1, 2, 3])], &[]);
        assert!(given.is_damaged(&field), "{ends:?}");
    }
    // Fewer values than runs, and ends that are not there.
    let short = [&[][..], &ints(&[1, 2, 4]), &[], &ints(&[1, 2])];
    assert!(Given::new(&[(4, 0), (3, 0), (2, 0)], &short, &[]).is_damaged(&field));
    assert!(Given::new(&[(4, 0), (4, 0), (2, 0)], &short, &[]).is_damaged(&field));
    assert!(Given::new(&[(4, 0), (1 << 62, 0), (2, 0)], &short, &[]).is_damaged(&field));
}

fn view(bytes: u32, buffer: u32, start: u32) -> Vec<u8> {
    [bytes, 0, buffer, start].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Views may tell the same bytes for each row: a file of 1 MiB was as many GiB of text as it had rows in thousands.
#[test]
fn texts_of_views_count_as_often_as_they_are_told() {
    let text = vec![b'x'; 1 << 20];
    let views = view(1 << 20, 0, 0).repeat(100);
    let given = Given::new(&[(100, 0)], &[&[], &views, &text], &[1]);
    let field = plain(ArrowType::TextView);
    match given.read(&field, 0..100, 64 << 20) {
        Err(Fault::TooLarge(bytes)) => assert!(bytes > 90 << 20),
        other => panic!("{other:?}"),
    }
    let some = given.read(&field, 0..50, 64 << 20).unwrap();
    assert_eq!(some.get(&field.values, 49), Some(Scalar::Text(&text)));
    assert!(given.read(&field, 0..100, 128 << 20).is_ok());
}

#[test]
fn views_of_what_is_not_there_are_damage() {
    let text = [b'x'; 20];
    for wrong in [
        view(20, 1, 0),
        view(20, u32::MAX, 0),
        view(20, 0, 1),
        view(u32::MAX, 0, 0),
        view(20, 0, u32::MAX),
    ] {
        let views = [view(20, 0, 0), wrong.clone()].concat();
        let given = Given::new(&[(2, 0)], &[&[], &views, &text], &[1]);
        assert!(given.is_damaged(&plain(ArrowType::BinaryView)), "{wrong:?}");
        // Of a row that is NULL nothing is asked.
        let given = Given::new(&[(2, 1)], &[&[1], &views, &text], &[1]);
        let read = given.read(&plain(ArrowType::BinaryView), 0..2, 1 << 20).unwrap();
        let values = &ArrowType::BinaryView;
        assert_eq!(read.get(values, 0), Some(Scalar::Bytes(&text)));
        assert_eq!(read.get(values, 1), None);
    }
    // More buffers than there are, or their number is not told.
    for variadic in [&[2][..], &[u64::MAX], &[]] {
        let given = Given::new(&[(1, 0)], &[&[], &view(20, 0, 0), &text], variadic);
        assert!(given.is_damaged(&plain(ArrowType::TextView)), "{variadic:?}");
    }
}

#[test]
fn strings_whose_places_fall_are_damage() {
    for ends in [&[0, 2, 1][..], &[-1, 1, 2], &[0, 1, 9], &[2, 1, 2], &[0, i32::MAX, 2]] {
        let given = Given::new(&[(2, 0)], &[&[], &ints(ends), b"abc"], &[]);
        assert!(given.is_damaged(&plain(ArrowType::Text(4))), "{ends:?}");
    }
    let given = Given::new(&[(2, 0)], &[&[], &ints(&[0, 1]), b"abc"], &[]);
    assert!(given.is_damaged(&plain(ArrowType::Binary(4))));
    let long = [0_i64, i64::MAX, i64::MAX].iter().flat_map(|end| end.to_le_bytes());
    let given = Given::new(&[(2, 0)], &[&[], &long.collect::<Vec<_>>(), b"abc"], &[]);
    assert!(given.is_damaged(&plain(ArrowType::Text(8))));
}

#[test]
fn buffers_that_are_too_short_are_damage() {
    for (values, width) in [(INT, 4), (ArrowType::FixedBinary(usize::MAX), 4), (ArrowType::Bool, 1)]
    {
        let given = Given::new(&[(9, 0)], &[&[], &vec![0; width]], &[]);
        assert!(given.is_damaged(&plain(values)));
    }
    // NULLs are told, and which they are is not.
    assert!(Given::new(&[(9, 1)], &[&[0], &[0; 36]], &[]).is_damaged(&plain(INT)));
    assert!(Given::new(&[(9, u64::MAX)], &[&[], &[0; 36]], &[]).is_damaged(&plain(INT)));
    // Rows of no bytes are as many as somebody says, and take none.
    for values in [ArrowType::FixedBinary(0), ArrowType::Null] {
        let given = match values {
            ArrowType::Null => Given::new(&[(ROWS, ROWS)], &[], &[]),
            _ => Given::new(&[(ROWS, 0)], &[&[], &[]], &[]),
        };
        let slice = given.read(&plain(values), 0..ROWS, 1 << 20).unwrap();
        assert_eq!((slice.rows as u64, slice.bytes()), (ROWS, 0));
    }
}

#[test]
fn keys_below_zero_or_too_large_are_damage() {
    let dictionary = |width, signed| {
        let index = IntType { width, signed };
        field(ArrowType::Text(4), Encoding::Dictionary { id: 3, index }, Vec::new())
    };
    for (width, signed, key) in
        [(1, true, -1_i64), (4, true, -1), (8, false, -1), (8, true, 1 << 32)]
    {
        let bytes = &key.to_le_bytes()[..width];
        let given = Given::new(&[(1, 0)], &[&[], bytes], &[]);
        assert!(given.is_damaged(&dictionary(width, signed)), "{key}");
        let given = Given::new(&[(1, 1)], &[&[0], bytes], &[]);
        let null = given.read(&dictionary(width, signed), 0..1, 1 << 20).unwrap();
        assert!(null.is_null(0));
    }
}

#[test]
fn lengths_of_compressed_buffers_are_checked() {
    let zeros = vec![0_u8; 4000];
    let mut zstd = Vec::with_capacity(zstd_safe::compress_bound(zeros.len()));
    zstd_safe::compress(&mut zstd, &zeros, 3).unwrap();
    let lz4 = {
        use std::io::Write;
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(&zeros).unwrap();
        encoder.finish().unwrap()
    };
    let field = plain(INT);
    for (codec, data) in [(Codec::Zstd, zstd), (Codec::Lz4, lz4)] {
        let given = |length: i64, data: &[u8]| {
            let stored = [&length.to_le_bytes()[..], data].concat();
            Given::new(&[(1000, 0)], &[&[], &stored], &[]).compressed(codec)
        };
        let whole = given(4000, &data);
        let slice = whole.read(&field, 900..1000, 1 << 20).unwrap();
        assert_eq!((slice.rows, slice.bytes()), (100, 400));
        for length in [3999, 4001, 8000, 0, -2, i64::MIN] {
            assert!(given(length, &data).is_damaged(&field), "{codec:?} {length}");
        }
        assert!(given(4000, &data[..data.len() / 2]).is_damaged(&field));
        assert!(given(4000, b"").is_damaged(&field));
        assert!(given(4000, b"no frame at all").is_damaged(&field));
        // Nothing is allocated by what a length says.
        for length in [1 << 40, i64::MAX] {
            let read = given(length, &data);
            assert!(matches!(read.read(&field, 0..1000, 1 << 20), Err(Fault::TooLarge(_))));
        }
        // What is as it is may lie as well.
        assert!(given(-1, &zeros[..3999]).is_damaged(&field));
        assert_eq!(given(-1, &zeros).read(&field, 0..1000, 1 << 20).unwrap().bytes(), 4000);
        let short = Given::new(&[(1, 0)], &[&[], &[0; 7]], &[]).compressed(codec);
        assert!(short.is_damaged(&field));
        let total = Buffers::new(&short.batch, &short.body, 1 << 20).total_bytes();
        assert!(matches!(total, Err(Fault::Damaged(_))));
    }
}

/// The same bytes may be buffers of many fields: they count each time.
#[test]
fn buffers_that_overlap_count_each_time() {
    let fields = vec![plain(ArrowType::Int { width: 8, signed: true }); 100];
    let body = vec![0_u8; 80_000];
    let buffers = [(0, 0), (0, 80_000)].repeat(100);
    let batch = Batch::of(10_000, vec![(10_000, 0); 100], buffers, Vec::new());
    let layout = BatchLayout::new(&fields, &batch).unwrap();
    let buffers = Buffers::new(&batch, &body, 1 << 20);
    let mut all = fields.iter().zip(&layout.fields);
    let failed =
        all.position(|(field, layout)| read_slice(field, layout, &buffers, 0..10_000).is_err());
    assert_eq!(failed, Some(13));
}

fn composite(of: Composite, children: Vec<Field>) -> Field {
    field(ArrowType::Composite(of), Encoding::Plain, children)
}

fn texts_of(given: &Given, field: &Field, bytes_max: u64) -> Result<Vec<Option<String>>> {
    let layout = BatchLayout::new([field], &given.batch)?;
    let buffers = Buffers::new(&given.batch, &given.body, bytes_max);
    let none = |_| Err(Fault::damaged("no dictionary"));
    let rows = 0..given.batch.rows;
    let column = read_values(field, &layout.fields[0], &buffers, rows, &none)?;
    let text = |row| match column.get(row) {
        Some(Scalar::Text(text)) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    Ok((0..column.slice.rows).map(text).collect())
}

fn longs(longs: &[i64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

#[test]
fn lists_that_lie_are_damage() {
    let list = composite(Composite::List(4), vec![plain(INT)]);
    let of = |rows: u64, items: u64, ends: &[i32]| {
        let buffers = [&[][..], &ints(ends), &[], &ints(&[7, 8, 9])];
        texts_of(&Given::new(&[(rows, 0), (items, 0)], &buffers, &[]), &list, 1 << 20)
    };
    let texts = of(2, 3, &[0, 1, 3]).unwrap();
    assert_eq!(texts, [Some("[7]".to_owned()), Some("[8, 9]".to_owned())]);
    // Ends that fall, and ends behind the items; fewer ends than rows, fewer items than are said.
    for (rows, items, ends) in [
        (2, 3, &[0, 2, 1][..]),
        (2, 3, &[0, 1, 4]),
        (2, 3, &[-1, 1, 2]),
        (3, 3, &[0, 1, 3]),
        (2, 4, &[0, 1, 4]),
        (2, 1 << 62, &[0, 1, i32::MAX]),
    ] {
        let found = of(rows, items, ends);
        assert!(matches!(found, Err(Fault::Damaged(_))), "{ends:?} {found:?}");
    }
    let large = composite(Composite::List(8), vec![plain(ArrowType::Null)]);
    for ends in [[0, i64::MAX], [i64::MAX - 1, i64::MAX], [0, (1 << 48) + 1], [1, 0], [i64::MIN, 0]]
    {
        let buffers = [&[][..], &longs(&ends)];
        let given = Given::new(&[(1, 0), (i64::MAX as u64, 0)], &buffers, &[]);
        assert!(matches!(texts_of(&given, &large, 1 << 20), Err(Fault::Damaged(_))), "{ends:?}");
    }
}

#[test]
fn list_views_that_lie_are_damage() {
    let view = composite(Composite::ListView(4), vec![plain(INT)]);
    let of = |starts: &[i32], counts: &[i32], valid: Option<u8>| {
        let bits = valid.map_or(Vec::new(), |byte| vec![byte]);
        let buffers = [&bits[..], &ints(starts), &ints(counts), &[], &ints(&[7, 8, 9])];
        let nulls = u64::from(valid.is_some());
        let nodes = [(starts.len() as u64, nulls), (3, 0)];
        texts_of(&Given::new(&nodes, &buffers, &[]), &view, 1 << 20)
    };
    let texts = of(&[1, 0, 800], &[2, 3, 0], None).unwrap();
    assert_eq!(texts, ["[8, 9]", "[7, 8, 9]", "[]"].map(|text| Some(text.to_owned())));
    for (start, count) in [(1, 3), (-1, 1), (0, -1), (i32::MAX, i32::MAX), (3, 1)] {
        let found = of(&[0, start], &[1, count], None);
        assert!(matches!(found, Err(Fault::Damaged(_))), "{start} {count} {found:?}");
        // Of a row that is NULL nothing is asked.
        let texts = of(&[0, start], &[1, count], Some(1)).unwrap();
        assert_eq!(texts, [Some("[7]".to_owned()), None]);
    }
}

/// Items without bytes: a batch of some bytes would have been lists of any length.
#[test]
fn texts_of_items_count_as_they_are_written() {
    for items in [plain(ArrowType::Null), composite(Composite::Struct, Vec::new())] {
        let fixed = composite(Composite::FixedList(1 << 20), vec![items]);
        let nodes = [(1 << 20, 0), (1 << 40, 0)];
        let buffers: &[&[u8]] = match fixed.children[0].values {
            ArrowType::Null => &[&[]],
            _ => &[&[], &[]],
        };
        let given = Given::new(&nodes, buffers, &[]);
        let found = texts_of(&given, &fixed, 16 << 20);
        assert!(matches!(found, Err(Fault::TooLarge(_))), "{found:?}");
    }
    // The same items in each row.
    let view = composite(Composite::ListView(8), vec![plain(INT)]);
    let (starts, counts) = (longs(&[0; 1000]), longs(&[1000; 1000]));
    let buffers = [&[][..], &starts, &counts, &[], &ints(&[7; 1000])];
    let given = Given::new(&[(1000, 0), (1000, 0)], &buffers, &[]);
    assert!(matches!(texts_of(&given, &view, 1 << 20), Err(Fault::TooLarge(_))));
    assert!(texts_of(&given, &view, 8 << 20).is_ok());
}

#[test]
fn children_with_too_few_rows_are_damage() {
    let of = composite(Composite::Struct, vec![plain(INT)]);
    let read = |rows: u64| {
        let given = Given::new(&[(2, 0), (rows, 0)], &[&[], &[], &ints(&[1, 2])], &[]);
        let layout = BatchLayout::new([&of], &given.batch).unwrap();
        let buffers = Buffers::new(&given.batch, &given.body, 1 << 20);
        let schema = ArrowSchema { fields: vec![of.clone()] };
        let column = &schema.columns().unwrap()[0];
        let none = |_| Err(Fault::damaged("no dictionary"));
        read_column((&schema, column), &layout, &buffers, 0..2, &none).map(drop)
    };
    assert_eq!(read(2), Ok(()));
    assert!(matches!(read(1), Err(Fault::Damaged(_))));
}

#[test]
fn maps_have_a_key_for_each_value() {
    let entries = composite(Composite::Struct, vec![plain(INT), plain(INT)]);
    let map = composite(Composite::Map, vec![entries]);
    let read = |valid: [u8; 2]| {
        let nodes = [(1, 0), (2, u64::from(valid[0] != 3)), (2, u64::from(valid[1] != 3)), (2, 0)];
        let (bits, keys) = (valid.map(|bits| [bits]), ints(&[1, 2]));
        let buffers = [&[][..], &ints(&[0, 2]), &bits[0], &bits[1], &keys, &[], &ints(&[5, 6])];
        texts_of(&Given::new(&nodes, &buffers, &[]), &map, 1 << 20)
    };
    assert_eq!(read([3, 3]).unwrap(), [Some("{\"1\": 5, \"2\": 6}".to_owned())]);
    assert!(matches!(read([1, 3]), Err(Fault::Damaged(_))));
    assert!(matches!(read([3, 2]), Err(Fault::Damaged(_))));
}

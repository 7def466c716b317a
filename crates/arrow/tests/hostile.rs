//! Metadata by hand: those that lie, and small ones that would take much time or memory.
#![allow(clippy::unwrap_used)]

use arrow_ipc as ipc;
use coload_arrow::{Fault, Footer, Message, Prefix, footer_bytes};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use ipc::MessageHeader as Header;

type Builder = FlatBufferBuilder<'static>;

/// A message of this header, whose body has so many bytes.
fn message(
    mut fbb: Builder,
    (kind, header): (Header, WIPOffset<UnionWIPOffset>),
    version: ipc::MetadataVersion,
    body_bytes: i64,
) -> Result<(Message, u64), Fault> {
    let mut message = ipc::MessageBuilder::new(&mut fbb);
    message.add_version(version);
    message.add_header_type(kind);
    message.add_header(header);
    message.add_bodyLength(body_bytes);
    let root = message.finish();
    fbb.finish(root, None);
    Message::decode(fbb.finished_data())
}

/// A field of integers under a name.
fn int_field<'b>(
    fbb: &mut FlatBufferBuilder<'b>,
    name: WIPOffset<&'b str>,
    bits: i32,
) -> WIPOffset<ipc::Field<'b>> {
    let mut int = ipc::IntBuilder::new(fbb);
    int.add_bitWidth(bits);
    int.add_is_signed(true);
    let int = int.finish();
    let children = fbb.create_vector::<WIPOffset<ipc::Field<'_>>>(&[]);
    let mut field = ipc::FieldBuilder::new(fbb);
    field.add_name(name);
    field.add_type_type(ipc::Type::Int);
    field.add_type_(int.as_union_value());
    field.add_children(children);
    field.finish()
}

/// A group of fields.
fn group<'b>(
    fbb: &mut FlatBufferBuilder<'b>,
    fields: &[WIPOffset<ipc::Field<'b>>],
) -> WIPOffset<ipc::Field<'b>> {
    let children = fbb.create_vector(fields);
    let of = ipc::Struct_Builder::new(fbb).finish();
    let mut field = ipc::FieldBuilder::new(fbb);
    field.add_type_type(ipc::Type::Struct_);
    field.add_type_(of.as_union_value());
    field.add_children(children);
    field.finish()
}

fn schema<'b>(
    fbb: &mut FlatBufferBuilder<'b>,
    fields: &[WIPOffset<ipc::Field<'b>>],
    endianness: ipc::Endianness,
) -> WIPOffset<ipc::Schema<'b>> {
    let fields = fbb.create_vector(fields);
    let mut schema = ipc::SchemaBuilder::new(fbb);
    schema.add_endianness(endianness);
    schema.add_fields(fields);
    schema.finish()
}

fn schema_message(
    make: impl FnOnce(&mut Builder) -> (Vec<WIPOffset<ipc::Field<'static>>>, ipc::Endianness),
    version: ipc::MetadataVersion,
) -> Result<(Message, u64), Fault> {
    let mut fbb = Builder::new();
    let (fields, endianness) = make(&mut fbb);
    let schema = schema(&mut fbb, &fields, endianness);
    message(fbb, (Header::Schema, schema.as_union_value()), version, 0)
}

fn told(of: Result<(Message, u64), Fault>) -> String {
    match of {
        Err(Fault::Unknown(text)) => text,
        other => panic!("{:?}", other.map(|_| "a message")),
    }
}

#[test]
fn other_orders_of_bytes_and_versions_are_told() {
    let one = |endianness| {
        move |fbb: &mut Builder| {
            let name = fbb.create_string("a");
            (vec![int_field(fbb, name, 32)], endianness)
        }
    };
    let (little, big) = (ipc::Endianness::Little, ipc::Endianness::Big);
    use ipc::MetadataVersion as Version;
    assert!(schema_message(one(little), Version::V5).is_ok());
    assert!(schema_message(one(little), Version::V4).is_ok());
    assert!(told(schema_message(one(big), Version::V5)).contains("big-endian"));
    for version in [Version::V1, Version::V2, Version::V3, Version(9), Version(-1)] {
        assert!(told(schema_message(one(little), version)).contains("version"));
    }
}

/// Fields may be the same bytes, and so may their names: metadata of 1 MiB were fields of 2 GiB.
#[test]
fn fields_that_share_their_name_have_a_limit() {
    let shared = |count: usize| {
        move |fbb: &mut Builder| {
            let name = fbb.create_string(&"n".repeat(1 << 20));
            let field = int_field(fbb, name, 32);
            (vec![field; count], ipc::Endianness::Little)
        }
    };
    let version = ipc::MetadataVersion::V5;
    assert!(told(schema_message(shared(1000), version)).contains("with their names"));
    let (Message::Schema(schema), 0) = schema_message(shared(50), version).unwrap() else {
        panic!("no schema")
    };
    assert_eq!((schema.fields.len(), schema.fields[49].name.len()), (50, 1 << 20));
}

/// Groups of the same two groups, and so on: few bytes are many fields.
#[test]
fn fields_that_share_those_within_them_are_read_or_refused() {
    for (levels, is_read) in [(10, true), (25, false)] {
        let made = schema_message(
            |fbb| {
                let name = fbb.create_string("n");
                let first = int_field(fbb, name, 32);
                let last = (0..levels).fold(first, |inner, _| group(fbb, &[inner, inner]));
                (vec![last], ipc::Endianness::Little)
            },
            ipc::MetadataVersion::V5,
        );
        assert_eq!(made.is_ok(), is_read, "{levels}");
    }
}

/// Ends of runs that are no numbers as they are: places in a dictionary, or runs of their own.
#[test]
fn ends_of_runs_are_plain() {
    for (is_coded, is_read) in [(false, true), (true, false)] {
        let made = schema_message(
            |fbb| {
                let name = fbb.create_string("n");
                let values = int_field(fbb, name, 64);
                let mut int = ipc::IntBuilder::new(fbb);
                int.add_bitWidth(32);
                int.add_is_signed(true);
                let int = int.finish();
                let mut coding = ipc::DictionaryEncodingBuilder::new(fbb);
                coding.add_id(1);
                let coding = coding.finish();
                let mut ends = ipc::FieldBuilder::new(fbb);
                ends.add_type_type(ipc::Type::Int);
                ends.add_type_(int.as_union_value());
                if is_coded {
                    ends.add_dictionary(coding);
                }
                let ends = ends.finish();
                let children = fbb.create_vector(&[ends, values]);
                let of = ipc::RunEndEncodedBuilder::new(fbb).finish();
                let mut runs = ipc::FieldBuilder::new(fbb);
                runs.add_type_type(ipc::Type::RunEndEncoded);
                runs.add_type_(of.as_union_value());
                runs.add_children(children);
                (vec![runs.finish()], ipc::Endianness::Little)
            },
            ipc::MetadataVersion::V5,
        );
        assert_eq!(made.is_ok(), is_read);
    }
}

#[test]
fn lengths_that_are_none_are_damage() {
    let batch = |rows: i64, node: (i64, i64), buffer: (i64, i64), body: i64| {
        let mut fbb = Builder::new();
        let nodes = fbb.create_vector(&[ipc::FieldNode::new(node.0, node.1)]);
        let buffers =
            fbb.create_vector(&[ipc::Buffer::new(0, 0), ipc::Buffer::new(buffer.0, buffer.1)]);
        let mut batch = ipc::RecordBatchBuilder::new(&mut fbb);
        batch.add_length(rows);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        let header = (Header::RecordBatch, batch.finish().as_union_value());
        message(fbb, header, ipc::MetadataVersion::V5, body)
    };
    assert!(batch(2, (2, 0), (0, 8), 8).is_ok());
    // What is empty is anywhere.
    assert!(batch(2, (2, 0), (i64::MAX, 0), 8).is_ok());
    for (rows, node, buffer, body) in [
        (-1, (2, 0), (0, 8), 8),
        (1 << 31, (2, 0), (0, 8), 8),
        (i64::MAX, (2, 0), (0, 8), 8),
        (2, (-1, 0), (0, 8), 8),
        (2, (2, -1), (0, 8), 8),
        (2, (2, 0), (-1, 8), 8),
        (2, (2, 0), (0, -8), 8),
        (2, (2, 0), (1, 8), 8),
        (2, (2, 0), (i64::MAX, i64::MAX), i64::MAX),
        (2, (2, 0), (0, 8), -1),
        (2, (2, 0), (0, 8), 0),
    ] {
        let made = batch(rows, node, buffer, body);
        assert!(matches!(made, Err(Fault::Damaged(_))), "{rows} {node:?} {buffer:?} {body}");
    }
    for length in [-1_i32, i32::MIN, (64 << 20) + 1, i32::MAX] {
        let bytes = length.to_le_bytes();
        let tail = [&bytes[..], b"ARROW1"].concat();
        assert!(footer_bytes(&tail, 1000).is_err());
        assert!(Prefix::decode(&[&[0xff; 4], &bytes[..]].concat()).is_err());
    }
}

fn footer(places: &[(i64, i32, i64)], bytes_before: u64) -> Result<Footer, Fault> {
    let mut fbb = Builder::new();
    let name = fbb.create_string("a");
    let field = int_field(&mut fbb, name, 32);
    let schema = schema(&mut fbb, &[field], ipc::Endianness::Little);
    let blocks = places.iter().map(|(start, head, body)| ipc::Block::new(*start, *head, *body));
    let blocks: Vec<ipc::Block> = blocks.collect();
    let (dictionaries, batches) = blocks.split_at(blocks.len() / 2);
    let dictionaries = fbb.create_vector(dictionaries);
    let batches = fbb.create_vector(batches);
    let mut footer = ipc::FooterBuilder::new(&mut fbb);
    footer.add_version(ipc::MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_dictionaries(dictionaries);
    footer.add_recordBatches(batches);
    let root = footer.finish();
    fbb.finish(root, None);
    Footer::decode(fbb.finished_data(), bytes_before)
}

/// A footer that named one message a million times had it read as often.
#[test]
fn messages_of_a_footer_do_not_overlap() {
    assert!(footer(&[(8, 100, 892), (1000, 100, 900)], 2000).is_ok());
    for places in [
        &[(8, 100, 900); 3][..],
        &[(8, 100, 1900), (8, 100, 1)],
        &[(0, 100, 100)],
        &[(-8, 100, 100)],
        &[(8, -100, 100)],
        &[(8, 8, 100)],
        &[(8, 100, -100)],
        &[(8, 100, 1893)],
        &[(i64::MAX, i32::MAX, i64::MAX)],
    ] {
        let made = footer(places, 2000);
        assert!(matches!(made, Err(Fault::Damaged(_))), "{places:?}");
    }
}

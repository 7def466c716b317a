//! The fifteen columns of many values.

use std::io::Write;

use super::Row;
use super::columns::Many;
use super::random::{Random, mix};
use super::values::{FIRST_DAY, date};
use super::words::{Comments, LEGAL_FORMS, NAMES, PLACES, THINGS};

/// Customers that there are; the ids of rows are below it.
pub const CUSTOMERS: u32 = 150_000;

/// Materials that there are; the ids of rows are below it.
pub const MATERIALS: u32 = 80_000;

/// Nothing in a quarter of the rows, else 3 to 18 words.
const COMMENTS: Comments = Comments { empty_permille: 250, lengths: 16, names: NAMES };

/// Appends one field; `id` is the column's value id, which only the numbers of customer and material use.
pub fn write(which: Many, row: &Row, id: u32, buffer: &mut Vec<u8>) {
    // Own streams of numbers, so that two columns of a document do not repeat each other.
    let mut document = Random::new(row.document_bits, which as u64);
    let mut item = Random::new(row.item_bits, which as u64);
    // Writing to a Vec cannot fail.
    let _ = match which {
        Many::RowId => write!(buffer, "{}", 5_000_000_000 + row.index),
        Many::DocumentNumber => write!(buffer, "{:010}", 80_000_000 + row.document),
        Many::DocumentUuid => uuid(&mut document, buffer),
        Many::ItemUuid => uuid(&mut item, buffer),
        Many::CustomerNumber => write!(buffer, "{:010}", 100_000 + u64::from(id) * 7_919 % 900_001),
        Many::MaterialNumber => {
            write!(buffer, "{:018}", 10_000_000 + u64::from(id) * 15_485_863 % 80_000_023)
        }
        Many::CustomerName => customer_name(id, buffer),
        Many::ContactEmail => contact_email(&mut document, buffer),
        Many::ExternalReference => external_reference(&mut document, buffer),
        Many::CreatedAt => created_at(row.day, &mut document, buffer),
        Many::Quantity => {
            let quantity = quantity(row);
            write!(buffer, "{}.{:03}", quantity / 1000, quantity % 1000)
        }
        Many::NetAmount => amount(net_amount(row), buffer),
        Many::TaxAmount => amount(
            net_amount(row) * [19, 19, 19, 7, 20, 21, 0][document.below(7) as usize] / 100,
            buffer,
        ),
        Many::CostAmount => {
            amount(net_amount(row) * i64::from(400 + item.below(500)) / 1000, buffer)
        }
        Many::Comment => COMMENTS.write(&mut item, buffer),
    };
}

fn uuid(random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let (high, low) = (random.bits(), random.bits());
    let version = high & 0x0fff | 0x4000;
    let variant = low >> 48 & 0x3fff | 0x8000;
    let (first, second, last) = (high >> 32, high >> 16 & 0xffff, low & 0xffff_ffff_ffff);
    write!(buffer, "{first:08x}-{second:04x}-{version:04x}-{variant:04x}-{last:012x}")
}

/// In thousandths: mostly a small number of pieces, sometimes a weight or a length.
fn quantity(row: &Row) -> i64 {
    let mut item = Random::new(row.item_bits, Many::Quantity as u64);
    if item.one_in(250) {
        (item.normal() * 1.3 + 11.0).exp() as i64 + 1
    } else {
        let pieces = ((item.normal() * 1.2 + 1.6).exp() as i64).max(1);
        1000 * if pieces > 20 { pieces / 10 * 10 } else { pieces }
    }
}

/// In hundredths: quantity times the price of the material, less a rebate of the document.
fn net_amount(row: &Row) -> i64 {
    let mut material = Random::new(u64::from(row.ids[material_place()]), 1);
    let price = (material.normal() * 1.5 + 8.0).exp() + 10.0;
    let rebate = f64::from(Random::new(row.document_bits, 99).below(300)) / 1000.0;
    (quantity(row) as f64 / 1000.0 * price * (1.0 - rebate)) as i64
}

/// Place of the material's number among the columns.
const fn material_place() -> usize {
    let mut at = 0;
    while !matches!(super::COLUMNS[at].values, super::columns::Values::Many(Many::MaterialNumber)) {
        at += 1;
    }
    at
}

fn amount(hundredths: i64, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    write!(buffer, "{}.{:02}", hundredths / 100, hundredths % 100)
}

fn customer_name(customer: u32, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let mut random = Random::new(mix(u64::from(customer)), 2);
    let first = random.pick(NAMES);
    let legal_form = random.pick(LEGAL_FORMS);
    match random.below(3) {
        0 => write!(buffer, "{first} & {} {legal_form}", random.pick(NAMES)),
        1 => write!(buffer, "{first} {} {legal_form}", random.pick(THINGS)),
        _ => write!(buffer, "{first} {} {} {legal_form}", random.pick(THINGS), random.pick(PLACES)),
    }
}

fn contact_email(random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let (name, company) = (ascii(random.pick(NAMES)), ascii(random.pick(NAMES)));
    let initial = char::from(b'a' + random.below(26) as u8);
    let domain = ["de", "com", "fr", "it", "eu"][random.below(5) as usize];
    write!(buffer, "{initial}.{name}@{company}-{}.{domain}", random.below(5_000))
}

/// Lower-case letters of a name; others are left out.
fn ascii(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}

fn external_reference(random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let number = random.below(10_000_000);
    match random.below(3) {
        0 => write!(buffer, "PO-{number:07}"),
        1 => write!(buffer, "45{number:08}"),
        _ => write!(
            buffer,
            "{}/{:05}/{}",
            random.pick(NAMES),
            number % 100_000,
            18 + random.below(7)
        ),
    }
}

fn created_at(day: u32, random: &mut Random, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let second = 6 * 3600 + random.below(14 * 3600);
    let day = date(FIRST_DAY + day as i32);
    write!(buffer, "{day} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

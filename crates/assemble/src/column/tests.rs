//! However the fragments of a column come, the column has their rows.

#![allow(clippy::unwrap_used)]

use coload_page::runs::expand_runs;
use coload_page::{SymbolDecoder, encode_plain};
use coload_store::append_page;
use coload_transform::{NULL_CODE, ProvisionalCodes};
use coload_types::{Value, Values};
use proptest::prelude::*;

use super::*;

/// How a fragment comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Values,
    Page,
    Codes,
    ParsedCodes,
    ParsedValues,
}

const FORMS: [Form; 5] =
    [Form::Values, Form::Page, Form::Codes, Form::ParsedCodes, Form::ParsedValues];

fn plain(physical: Physical, values: &[Option<u8>]) -> Plain {
    let mut plain = Plain::empty(physical);
    for value in values {
        let value = value.map(|v| match physical {
            Physical::Int => Value::Int(i64::from(v) - 2),
            Physical::Wide => Value::Wide(i128::from(v) << 70),
            Physical::Bytes => Value::Bytes(format!("value {v}").into_bytes().into()),
        });
        plain.push(value.as_ref());
    }
    plain
}

fn rows(column: &PartitionColumn, physical: Physical) -> Vec<Option<Value>> {
    let decoders: Vec<SymbolDecoder> =
        column.symbols.iter().map(|s| SymbolDecoder::open(s).unwrap()).collect();
    let mut rows = Plain::empty(physical);
    for page in &column.pages {
        let page = expand_runs(page).unwrap();
        let view = page.view().unwrap();
        append_page(&view, column.dictionary.as_ref(), &decoders, &mut rows).unwrap();
    }
    (0..rows.len()).map(|row| rows.get(row)).collect()
}

/// Codes of values in order of first appearance, as a parser makes them.
fn codes(values: &Plain, dictionary: &mut Values) -> FragmentColumn {
    let mut codes = Vec::new();
    for row in 0..values.len() {
        let Some(value) = values.get(row) else {
            codes.push(NULL_CODE);
            continue;
        };
        let known = (0..dictionary.len()).position(|code| dictionary.get(code) == value);
        codes.push(known.unwrap_or_else(|| {
            dictionary.push(&value);
            dictionary.len() - 1
        }) as u16);
    }
    let nulls = codes.contains(&NULL_CODE);
    FragmentColumn::Codes { codes: ProvisionalCodes::new(&codes, 300), dictionary: 0, nulls }
}

fn assembly(physical: Physical, policy: DictionaryPolicy) -> Assembly {
    Assembly { physical, policy, limit: DictionaryLimit::default(), symbols: Symbols::Train }
}

proptest! {
    #[test]
    fn a_column_has_the_rows_of_its_fragments_in_order_however_they_come(
        fragments in proptest::collection::vec(
            (proptest::collection::vec(proptest::option::of(0u8..9), 1..50), 0usize..FORMS.len()), 1..8),
        shape in 0usize..3,
        backwards in any::<bool>(),
        policy in prop_oneof![Just(DictionaryPolicy::Auto), Just(DictionaryPolicy::Always)],
    ) {
        let physical = [Physical::Int, Physical::Wide, Physical::Bytes][shape];
        let assembly = assembly(physical, policy);
        let mut builder = ColumnBuilder::new(assembly);
        let (mut pages, mut expected) = (Vec::new(), Vec::new());
        let (mut coded, mut parsed) = (Vec::new(), Parsed::default());
        let mut dictionary = Values::empty(physical);
        let mut arrivals: Vec<_> = fragments.iter().enumerate().collect();
        for (values, _) in &fragments {
            let plain = plain(physical, values);
            expected.extend((0..plain.len()).map(|row| plain.get(row)));
        }
        if backwards {
            arrivals.reverse();
        }
        for (number, (values, form)) in arrivals {
            let (number, values) = (number as u32, plain(physical, values));
            match FORMS[*form] {
                Form::Values => pages.extend(builder.take_values(number, values).unwrap().pages),
                Form::Page => {
                    let page = vec![(number, encode_plain(&values).unwrap())];
                    pages.extend(builder.take_pages(None, Vec::new(), page).unwrap().pages);
                }
                Form::Codes => coded.push((number, FragmentColumn::Plain(values))),
                Form::ParsedCodes => {
                    parsed.fragments.push((number, codes(&values, &mut dictionary)));
                }
                Form::ParsedValues => {
                    parsed.fragments.push((number, FragmentColumn::Plain(values)));
                }
            }
        }
        if !coded.is_empty() {
            // A part of the column that was assembled elsewhere, with its dictionary.
            let mut elsewhere = ColumnBuilder::new(Assembly { policy: DictionaryPolicy::Always, ..assembly });
            elsewhere.take_parsed(Parsed { fragments: coded, ..Parsed::default() });
            let (numbers, column) = elsewhere.finish(&StepClock::default(), None).unwrap();
            let part = numbers.into_iter().zip(column.pages).collect();
            let taken = builder.take_pages(column.dictionary, column.symbols, part).unwrap();
            pages.extend(taken.pages);
        }
        if !parsed.fragments.is_empty() {
            parsed.fragments.sort_by_key(|(number, _)| *number);
            parsed.temporaries = vec![TemporaryDictionary { values: dictionary, stale: false }];
            builder.take_parsed(parsed);
        }
        let column = builder.finish_with(pages, &StepClock::default()).unwrap();
        prop_assert_eq!(column.pages.len(), fragments.len());
        prop_assert_eq!(rows(&column, physical), expected);
    }
}

#[test]
fn a_fragment_that_comes_twice_is_refused_in_any_form() {
    let values = || plain(Physical::Int, &[Some(1), None]);
    let page = || vec![(7, encode_plain(&values()).unwrap())];
    let mut builder = ColumnBuilder::new(assembly(Physical::Int, DictionaryPolicy::Auto));
    builder.take_values(7, values()).unwrap();
    assert!(matches!(builder.take_values(7, values()), Err(Error::Corrupt(_))));
    assert!(matches!(builder.take_pages(None, Vec::new(), page()), Err(Error::Corrupt(_))));
    assert!(matches!(builder.expect(7), Err(Error::Corrupt(_))));
    builder.expect(8).unwrap();
    assert!(matches!(builder.take_values(8, values()), Err(Error::Corrupt(_))));
}

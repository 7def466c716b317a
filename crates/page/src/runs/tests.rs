#![allow(clippy::unwrap_used)]
use super::*;
use crate::codec::encode_codes_u16;

fn comes_back(page: Page) -> (usize, usize) {
    let before = page.bytes.len();
    let shrunk = shrink_to_runs(page.clone()).unwrap();
    assert_eq!(expand_runs(&shrunk).unwrap(), page);
    (before, shrunk.bytes.len())
}

#[test]
fn pages_with_runs_shrink_and_come_back() {
    let codes: Vec<u16> = (0..9000u32).map(|i| (i / 4 * 7919 % 300) as u16).collect();
    let (before, after) = comes_back(encode_codes_u16(&codes, 300));
    assert!(after * 2 < before, "{after} of {before}");
    let with_nulls: Vec<u16> = codes.iter().map(|c| if c % 5 == 0 { 300 } else { *c }).collect();
    comes_back(encode_codes_u16(&with_nulls, 300));
    comes_back(encode_codes_u16(&[7; 5000], 9));
    let ints: Vec<i64> = codes.iter().map(|c| i64::from(*c) * 1_000_003).collect();
    let mut nulls = Bitmap::zeros(ints.len());
    (0..400).for_each(|i| nulls.set(i));
    comes_back(encode_int(&ints, None));
    comes_back(encode_int(&ints, Some(&nulls)));
    let wides: Vec<i128> = ints.iter().map(|i| i128::from(*i) << 40).collect();
    comes_back(encode_wide(&wides, Some(&nulls)));
    let texts: Vec<String> = codes.iter().map(|c| "x".repeat(*c as usize % 20)).collect();
    let slices: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    comes_back(join_text(&slices, None, 1).unwrap());
}

#[test]
fn runs_of_codes_are_those_of_their_page() {
    for (rows, run, distinct) in [(9000, 4, 300u16), (70_000, 90, 2), (5000, 1, 7)] {
        let code = |i: u32| ((i / run).wrapping_mul(7919) % (u32::from(distinct) + 1)) as u16;
        let codes: Vec<u16> = (0..rows).map(code).collect();
        let page = encode_codes_u16(&codes, distinct);
        let Some(runs) = RowRuns::find(&codes, distinct as usize) else {
            assert_eq!(run, 1);
            continue;
        };
        let values: Vec<u16> = runs.rows().map(|i| codes[i]).collect();
        let stored = runs.store_codes(&encode_codes_u16(&values, distinct)).unwrap();
        assert_eq!(expand_runs(&stored).unwrap(), page);
        let map = |c: u32| (c < u32::from(distinct)).then_some(c * 3 + 1);
        let mapped = map_codes(&stored, map, 40_000).unwrap();
        assert_eq!(expand_runs(&mapped).unwrap(), map_codes(&page, map, 40_000).unwrap());
    }
}

#[test]
fn rows_that_differ_stay_as_they_are() {
    let codes: Vec<u16> = (0..5000).map(|i| i % 300).collect();
    let page = encode_codes_u16(&codes, 300);
    assert_eq!(shrink_to_runs(page.clone()).unwrap(), page);
}

#[test]
fn lying_runs_are_refused() {
    let codes: Vec<u16> = (0..9000).map(|i| i / 40).collect();
    let page = shrink_to_runs(encode_codes_u16(&codes, 300)).unwrap();
    let runs = page.runs.unwrap();
    for lie in [
        Runs { count: runs.count - 1, ..runs },
        Runs { count: u32::MAX, ..runs },
        Runs { width: 33, ..runs },
        Runs { width: 0, ..runs },
    ] {
        assert!(expand_runs(&Page { runs: Some(lie), ..page.clone() }).is_err());
    }
}

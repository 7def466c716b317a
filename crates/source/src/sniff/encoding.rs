//! The sample in UTF-8.

use std::borrow::Cow;

use coload_input::{Encoding, End, Said, TextEncoding, convert_all, detect_encoding};

use crate::dialect::GivenDialect;
use crate::sample::SampleEnd;

/// A sample, and how it was written.
pub struct Converted<'a> {
    pub encoding: TextEncoding,
    pub text: Cow<'a, [u8]>,
    pub evidence: Option<String>,
}

/// Finds out the encoding, unless it was given, and converts the sample.
pub fn convert_sample<'a>(sample: &'a [u8], end: SampleEnd, given: &GivenDialect) -> Converted<'a> {
    let (encoding, evidence) = match given {
        GivenDialect { encoding: Some(encoding), .. } => (*encoding, None),
        // Who says what becomes of bytes that are not UTF-8 says that it is UTF-8.
        GivenDialect { policies, .. } if policies.invalid_bytes.is_some() => {
            (Encoding::of_mark(sample).map_or(Encoding::Utf8, |(encoding, _)| encoding), None)
        }
        _ => detect_encoding(sample),
    };
    let said = if given.encoding.is_some() { Said::User } else { Said::Nobody };
    let (of_text, mark) = encoding.of_text(sample, said);
    let end = match end {
        SampleEnd::Whole => End::Here,
        SampleEnd::Cut => End::NotYet,
    };
    let text = match of_text {
        Encoding::Utf8 => Cow::Borrowed(sample),
        other => Cow::Owned(convert_all(other, &sample[mark..], end)),
    };
    Converted { encoding: TextEncoding { encoding, said }, text, evidence }
}

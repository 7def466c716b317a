//! Numbers, days and instants eight at a time.
//!
//! ```text
//!   eight fields -> two words of each, its last sixteen characters -> digits -> values, and a bit for each that was read
//! ```
//!
//! The arithmetic is that of [`super::swar`], each lane of a vector a field: nothing depends on how long a field is. What is
//! not plain digits with a minus before them and a point among them is left to the parsers of one field, which also say
//! what is wrong with it.
//!
//! Cost: about 8 cycles a field, 12 a float.

use crate::{DECIMAL_INT_PRECISION_MAX, DataType};

/// Fields that are read at once.
const LANES: usize = 8;

/// What becomes of numbers with zeros before their first digit, which may be codes, and of those that are not what their
/// DOUBLE is printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubtful {
    /// They are read as any others.
    Read,
    /// They are left out.
    LeftOut,
}

/// Reads many fields of a type of numbers, days or instants.
#[derive(Debug, Clone, Copy)]
pub struct EightFields {
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
    form: Form,
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
    doubtful: Doubtful,
}

#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
enum Form {
    Integer { min: i64, max: i64 },
    Decimal { precision: u8, scale: u8 },
    Float(FloatForm),
    Moment(MomentForm),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
enum FloatForm {
    Double,
    Real,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code))]
enum MomentForm {
    Day,
    Instant,
}

impl EightFields {
    /// `None` where the type has no such numbers, or the processor no instructions for them.
    pub fn new(data_type: DataType, doubtful: Doubtful) -> Option<Self> {
        if crate::simd_level() != crate::SimdLevel::Avx512 {
            return None;
        }
        let form = match data_type {
            DataType::SmallInt | DataType::Integer | DataType::BigInt => {
                let (min, max) = data_type.facts().limits;
                Form::Integer { min, max }
            }
            DataType::Decimal { precision, scale } if precision <= DECIMAL_INT_PRECISION_MAX => {
                Form::Decimal { precision, scale }
            }
            DataType::Double => Form::Float(FloatForm::Double),
            DataType::Real => Form::Float(FloatForm::Real),
            DataType::Date => Form::Moment(MomentForm::Day),
            // Inference takes only those that name their zone.
            DataType::TimestampTz if doubtful == Doubtful::LeftOut => return None,
            DataType::Timestamp | DataType::TimestampTz => Form::Moment(MomentForm::Instant),
            _ => return None,
        };
        Some(EightFields { form, doubtful })
    }

    /// Appends a value for each field `chunk[starts[i]..ends[i]]` to `values`, and the numbers of those that were not read to
    /// `missed`; their values are 0.
    ///
    /// # Panics
    /// When there are not as many starts as ends.
    pub fn read(
        &self,
        chunk: &[u8],
        starts: &[u32],
        ends: &[u32],
        values: &mut Vec<i64>,
        missed: &mut Vec<u32>,
    ) {
        assert_eq!(starts.len(), ends.len());
        #[cfg(target_arch = "x86_64")]
        // SAFETY: there is a value of the type only where the instructions are.
        unsafe {
            avx512::read(*self, chunk, starts, ends, values, missed);
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            missed.extend(0..starts.len() as u32);
            values.resize(values.len() + starts.len(), 0);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod floats;
#[cfg(target_arch = "x86_64")]
mod moments;

//! Leaves of keys that are numbers of a few bytes: the same bytes as [`crate::leaf::put_leaf`] makes, without a slice for each key.
//!
//! Cost: a comparison, an exclusive or and a store a key.

/// Most bytes of a number.
pub const WIDTH_MAX: usize = size_of::<u64>();

/// The keys of a leaf that is being filled.
#[derive(Debug, Default)]
pub struct NumberLeaf {
    pub keys: Vec<u64>,
    /// Bytes of each key.
    pub width: usize,
    /// Bytes that all have in common.
    pub common: usize,
}

/// How many bytes two numbers of so many bytes have in common from their beginnings on.
#[inline]
pub fn alike(a: u64, b: u64, width: usize) -> usize {
    width - (u64::BITS - (a ^ b).leading_zeros()).div_ceil(u8::BITS) as usize
}

/// The first bytes of a number, so many of `width`.
pub fn head(number: u64, bytes: usize, width: usize) -> u64 {
    number.checked_shr(((width - bytes) * 8) as u32).unwrap_or(0)
}

impl NumberLeaf {
    /// The first key as a start of a leaf, without `after` bytes.
    pub fn start(&self, after: usize) -> u64 {
        let shift = ((WIDTH_MAX - self.width + after) * 8) as u32;
        self.keys.first().map_or(0, |first| first.checked_shl(shift).unwrap_or(0))
    }

    /// Appends the leaf; `after` bytes of each key are left out.
    pub fn put(&self, after: usize, out: &mut Vec<u8>) {
        let (Some(first), Some(last)) = (self.keys.first(), self.keys.last()) else { return };
        let prefix = alike(*first, *last, self.width);
        let rest = self.width - prefix;
        out.extend_from_slice(&(self.keys.len() as u16).to_le_bytes());
        out.extend_from_slice(&(rest as u16).to_le_bytes());
        out.extend_from_slice(&((prefix - after) as u32).to_le_bytes());
        let bytes = first.to_be_bytes();
        let start = WIDTH_MAX - self.width;
        out.extend_from_slice(&bytes[start + after..start + prefix]);
        match rest {
            0 => {}
            1 => put_rests::<1>(&self.keys, out),
            2 => put_rests::<2>(&self.keys, out),
            3 => put_rests::<3>(&self.keys, out),
            4 => put_rests::<4>(&self.keys, out),
            5 => put_rests::<5>(&self.keys, out),
            6 => put_rests::<6>(&self.keys, out),
            7 => put_rests::<7>(&self.keys, out),
            _ => put_rests::<8>(&self.keys, out),
        }
    }
}

fn put_rests<const REST: usize>(keys: &[u64], out: &mut Vec<u8>) {
    let before = out.len();
    out.resize(before + keys.len() * REST, 0);
    for (to, key) in out[before..].as_chunks_mut::<REST>().0.iter_mut().zip(keys) {
        to.copy_from_slice(&key.to_be_bytes()[WIDTH_MAX - REST..]);
    }
}

//! Keys of fields: their bytes in two words.

/// Longest field that is its own key.
pub(super) const KEY_BYTES: usize = 15;
/// What a longer field has in place of its length.
const LONG: u64 = 32;
/// The bit of a key's last word that says so.
pub(super) const IS_LONG: u64 = LONG << 56;
pub(super) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
const KEY_MIX: u64 = 0xD6E8_FEB8_6659_FD93;

/// 15 bytes of a field, zeros behind them, and the length in the last byte; or the first 8 bytes of a
/// long one, and a hash.
pub(super) type Key = [u64; 2];

/// Keeps the first bytes of a 16-byte load, by their number.
pub(super) static MASKS: [Key; KEY_BYTES + 2] = {
    let mut masks = [[0; 2]; KEY_BYTES + 2];
    let mut len = 1;
    while len <= KEY_BYTES {
        masks[len][0] = if len >= 8 { u64::MAX } else { (1 << (8 * len)) - 1 };
        masks[len][1] = if len <= 8 { 0 } else { (1 << (8 * (len - 8))) - 1 };
        len += 1;
    }
    masks[KEY_BYTES + 1] = masks[KEY_BYTES];
    masks
};

/// The key of a field of up to 15 bytes; 16 bytes are read.
#[inline(always)]
pub(super) fn make_key(text: &[u8], start: usize, len: usize, key: &mut Key) {
    let [low, high] = MASKS[len];
    *key = [word(text, start) & low, word(text, start + 8) & high | (len as u64) << 56];
}

/// The key of a field; a long one has the hash of its text.
#[inline(always)]
pub(super) fn key_of(text: &[u8], start: usize, end: usize) -> Key {
    let mut key = [0; 2];
    match end - start <= KEY_BYTES {
        true => make_key(text, start, end - start, &mut key),
        false => key = long_key(&text[start..end]),
    }
    key
}

/// The key of a field of more than 15 bytes: its first bytes and a hash of all.
#[inline(always)]
fn long_key(text: &[u8]) -> Key {
    [word(text, 0), hash_long(text) >> 8 | LONG << 56]
}

#[inline(always)]
pub(super) fn word(text: &[u8], at: usize) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&text[at..at + 8]);
    u64::from_le_bytes(raw)
}

#[inline(always)]
fn words(text: &[u8], at: usize) -> u128 {
    let mut raw = [0; 16];
    raw.copy_from_slice(&text[at..at + 16]);
    u128::from_le_bytes(raw)
}

/// Whether two texts of more than 15 bytes, equally long, are the same.
#[inline(always)]
pub(super) fn same_long(a: &[u8], b: &[u8]) -> bool {
    let len = a.len().min(b.len());
    // The last 16 bytes overlap those before.
    let mut differ = (words(a, 0) ^ words(b, 0)) | (words(a, len - 16) ^ words(b, len - 16));
    let mut at = 16;
    while at + 16 < len {
        differ |= words(a, at) ^ words(b, at);
        at += 16;
    }
    differ == 0
}

/// A hash of a key, whose high bits are well mixed.
#[inline(always)]
pub(super) fn mix(key: Key) -> u64 {
    let x = key[0] ^ key[1].wrapping_mul(KEY_MIX);
    (x ^ x >> 31).wrapping_mul(GOLDEN)
}

/// Hash of a text of at least 16 bytes, 16 at a time, the last 16 overlapping.
#[inline(always)]
fn hash_long(text: &[u8]) -> u64 {
    let fold = |words: u128, mix: u64| {
        let product = u128::from(words as u64 ^ mix) * u128::from((words >> 64) as u64 ^ KEY_MIX);
        product as u64 ^ (product >> 64) as u64
    };
    let len = text.len();
    let mut hash = fold(words(text, 0), GOLDEN) ^ fold(words(text, len - 16), len as u64);
    let mut at = 16;
    while at + 16 < len {
        hash = hash.rotate_left(23) ^ fold(words(text, at), GOLDEN);
        at += 16;
    }
    hash
}

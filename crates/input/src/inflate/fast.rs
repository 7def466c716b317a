//! The loop that decodes most symbols: far from the ends of input and room it looks neither up.

use super::tables::{
    DISTANCE_BITS, END, EXCEPTIONAL, EXCEPTIONAL_PACKED, HAS_LENGTH, LENGTH_BITS, LENGTH_ENTRIES,
    LITERAL, SUBTABLE,
};
use super::{HISTORY_BYTES, Inflate, Stop, Stream, value};

/// Input that a turn of the loop may read, and some more.
const INPUT_BYTES: usize = 32;
/// Text that a turn may write: nine literals, a match of 258, and 47 bytes copied too much.
const ROOM_BYTES: usize = 320;
/// Most bits of a distance's code, and of what follows it.
const DISTANCE_CODE_BITS: u32 = 15;
const DISTANCE_EXTRA_BITS: u32 = 13;

impl Inflate {
    /// Decodes symbols until an end is near, or the block ends (true).
    pub(super) fn decode_fast(&self, stream: &mut Stream<'_>) -> Result<bool, Stop> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("bmi2") {
            // SAFETY: the machine has it.
            return unsafe { self.decode_bmi2(stream) };
        }
        self.decode_loop(stream)
    }

    /// Shifts and masks by a register take one instruction, which is a tenth of the time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2")]
    fn decode_bmi2(&self, stream: &mut Stream<'_>) -> Result<bool, Stop> {
        self.decode_loop(stream)
    }

    #[allow(clippy::too_many_lines)]
    #[inline(always)]
    fn decode_loop(&self, stream: &mut Stream<'_>) -> Result<bool, Stop> {
        let (Some(input_end), Some(room_end)) =
            (stream.input.len().checked_sub(INPUT_BYTES), stream.out.len().checked_sub(ROOM_BYTES))
        else {
            return Ok(false);
        };
        if stream.at > input_end || stream.made > room_end {
            return Ok(false);
        }
        let lengths: &[u32; LENGTH_ENTRIES] = &self.tables.lengths;
        let (packed, distances) = (&self.tables.packed, &self.tables.distances);
        let (input, out) = (stream.input.as_ptr(), stream.out.as_mut_ptr());
        // SAFETY: both are within their slices.
        let (mut at, mut to) = unsafe { (input.add(stream.at), out.add(stream.made)) };
        // SAFETY: as above.
        let (input_end, room_end) = unsafe { (input.add(input_end), out.add(room_end)) };
        let mut bits = stream.bits;
        // Only the low 8 bits count; those above are garbage of entries.
        let mut count = stream.count;

        // SAFETY (all blocks): `at <= input_end` when a turn starts, and a turn reads at most twice,
        // 8 bytes that begin at most 14 bytes later. `to <= room_end` when a turn starts, and it
        // writes at most ROOM_BYTES. Look-ups are masked to the table, or go to a
        // subtable that `tables` has put within it.
        macro_rules! refill {
            () => {
                // SAFETY: see above.
                bits |= u64::from_le_bytes(unsafe { at.cast::<[u8; 8]>().read() }) << (count & 63);
                // SAFETY: see above.
                at = unsafe { at.add(7 - ((count >> 3) & 7) as usize) };
                count |= 56;
            };
        }
        macro_rules! take {
            ($entry:expr) => {
                bits >>= $entry & 0x3f;
                count = count.wrapping_sub($entry);
            };
        }
        // The literals of an entry, and up to 4 bytes more.
        macro_rules! literals {
            ($entry:expr) => {
                // SAFETY: see above.
                unsafe { to.cast::<[u8; 4]>().write((($entry >> 32) as u32).to_le_bytes()) };
                // SAFETY: see above.
                to = unsafe { to.add(($entry >> 8) as usize & 3) };
            };
        }
        macro_rules! next_symbols {
            () => {
                packed[bits as usize & ((1 << LENGTH_BITS) - 1)]
            };
        }
        macro_rules! take_symbols {
            ($entry:ident, $saved:ident) => {
                $saved = bits;
                bits >>= $entry & 0x3f;
                count = count.wrapping_sub($entry as u32);
                literals!($entry);
            };
        }
        macro_rules! next_turn {
            ($entry:ident) => {
                if (at > input_end) | (to > room_end) {
                    break Ok(false);
                }
                refill!();
                $entry = next_symbols!();
            };
        }

        refill!();
        let mut entry = next_symbols!();
        let stopped = loop {
            // Of 56 bits: two look-ups of 11, a length of 20, and the look-up of what follows.
            let mut saved;
            take_symbols!(entry, saved);
            if entry & (HAS_LENGTH | EXCEPTIONAL_PACKED) == 0 {
                entry = next_symbols!();
                take_symbols!(entry, saved);
                if entry & (HAS_LENGTH | EXCEPTIONAL_PACKED) == 0 {
                    entry = next_symbols!();
                    take_symbols!(entry, saved);
                    if entry & (HAS_LENGTH | EXCEPTIONAL_PACKED) == 0 {
                        next_turn!(entry);
                        continue;
                    }
                }
            }
            let length = if entry & HAS_LENGTH > 0 {
                let with_extra = saved & !(u64::MAX << (entry & 63));
                (entry >> 16) as usize % 512 + (with_extra >> ((entry >> 10) & 31)) as usize
            } else {
                // Codes of more bits than are looked up, and the end.
                let mut symbol = lengths[bits as usize & ((1 << LENGTH_BITS) - 1)];
                take!(symbol);
                if symbol & SUBTABLE != 0 {
                    let mask = (1 << ((symbol >> 8) & 0xf)) - 1;
                    symbol = lengths[(symbol >> 16) as usize + (bits as usize & mask)];
                    saved = bits;
                    take!(symbol);
                }
                if symbol & LITERAL != 0 {
                    // SAFETY: see above.
                    unsafe { to.write((symbol >> 16) as u8) };
                    // SAFETY: see above.
                    to = unsafe { to.add(1) };
                    next_turn!(entry);
                    continue;
                }
                if symbol & END != 0 {
                    break Ok(true);
                }
                if symbol & EXCEPTIONAL != 0 {
                    break Err("a code of literals has no meaning".into());
                }
                value(symbol, saved)
            };

            // At most 22 + 20 bits are used, so the look-up does not wait for more.
            let mut entry_d = distances[bits as usize & ((1 << DISTANCE_BITS) - 1)];
            count &= 0xff;
            if entry_d & EXCEPTIONAL != 0 {
                if entry_d & SUBTABLE == 0 {
                    break Err("a code of distances has no meaning".into());
                }
                if count < DISTANCE_CODE_BITS + DISTANCE_EXTRA_BITS {
                    refill!();
                }
                take!(entry_d);
                let mask = (1 << ((entry_d >> 8) & 0xf)) - 1;
                entry_d = distances[(entry_d >> 16) as usize + (bits as usize & mask)];
                if entry_d & EXCEPTIONAL != 0 {
                    break Err("a code of distances has no meaning".into());
                }
            } else if count < DISTANCE_BITS as u32 + DISTANCE_EXTRA_BITS {
                refill!();
            }
            let distance = value(entry_d, bits);
            take!(entry_d);

            // The next look-up does not wait for the copy.
            refill!();
            entry = next_symbols!();
            // SAFETY: `to` is within the room.
            let made = unsafe { to.offset_from(out) } as usize;
            if distance > made {
                if distance > made + self.history_bytes {
                    break Err("a match reaches before the start".into());
                }
                // SAFETY: within the room, as above.
                unsafe { copy_old_match(&self.history, to, made, distance, length) };
            } else {
                // SAFETY: `distance <= made`, and the room holds what is written.
                unsafe { copy_match(to, distance, length) };
            }
            // SAFETY: within the room, as above.
            to = unsafe { to.add(length) };
            if (at > input_end) | (to > room_end) {
                break Ok(false);
            }
        };
        // SAFETY: both are within their slices still.
        (stream.at, stream.made) =
            unsafe { (at.offset_from(input) as usize, to.offset_from(out) as usize) };
        stream.count = count & 0xff;
        stream.bits = bits;
        stopped
    }
}

/// Copies a match that starts in the history, `distance - made` bytes before its end.
///
/// # Safety
/// `made` bytes before `to` are readable, and `length` from `to` writable.
#[cold]
unsafe fn copy_old_match(history: &[u8], to: *mut u8, made: usize, distance: usize, length: usize) {
    let before = distance - made;
    let old = &history[HISTORY_BYTES - before..];
    let old = &old[..before.min(length)];
    // SAFETY: as demanded; what follows the history is at the start of the text.
    unsafe {
        std::ptr::copy_nonoverlapping(old.as_ptr(), to, old.len());
        for i in old.len()..length {
            to.add(i).write(to.add(i).sub(distance).read());
        }
    }
}

/// Copies `length` bytes that stand `distance` before `to`, and up to 47 more.
///
/// # Safety
/// `distance` bytes before `to` are readable, and `length + 48` from `to` writable.
#[inline(always)]
unsafe fn copy_match(to: *mut u8, distance: usize, length: usize) {
    // SAFETY: as demanded; a turn writes 16 or 8 bytes that begin before `length`.
    unsafe {
        let from = to.sub(distance).cast_const();
        if distance >= 16 {
            let mut done = 0;
            loop {
                to.add(done).cast::<[u8; 16]>().write(from.add(done).cast::<[u8; 16]>().read());
                to.add(done + 16)
                    .cast::<[u8; 16]>()
                    .write(from.add(done + 16).cast::<[u8; 16]>().read());
                done += 32;
                if done >= length {
                    return;
                }
            }
        }
        if distance == 1 {
            to.write_bytes(from.read(), length);
            return;
        }
        // Each step copies 8 bytes, of which those up to the distance are new.
        let step = distance.min(8);
        let mut done = 0;
        while done < length {
            to.add(done).cast::<[u8; 8]>().write(from.add(done).cast::<[u8; 8]>().read());
            done += step;
        }
    }
}

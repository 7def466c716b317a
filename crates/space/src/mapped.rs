//! Files that are mapped into memory, and what happens when one of them cannot be read.
//!
//! ```text
//!   a read of a map   ->  SIGBUS: the file was cut, or its disk has a bad sector
//!   the handler       ->  looks the address up in the table of maps, marks the map as damaged,
//!                         puts zeros in the place of the page and all after it
//!   the read goes on  ->  with zeros
//!   the reader        ->  asks [`Mapped::is_damaged`] before anything that it made leaves it: an error
//! ```
//!
//! Invariants: the mark is set before the zeros are there, so that who saw zeros sees the mark. A damaged map stays
//! damaged; who wants the file again maps it again. The handler allocates nothing and takes no lock: the table is a
//! chain of blocks that are never freed, and each entry has a version that is odd while it changes. Addresses that are
//! in no map of ours go to the handler that was there before, or end the process as they did.
//!
//! Cost: an entry of 32 bytes for each map; nothing where bytes are read; a load and a fence for each batch.
//!
//! Why not reads instead of maps, and what else was thought of: docs/decisions/0023-a-map-that-breaks.md.

use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::{Deref, Range};
use std::sync::{
    Mutex, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering, fence},
};
use std::{io, ptr};

use coload_threads::lock;
use memmap2::{Mmap, UncheckedAdvice};

/// Entries of a block of the table.
const BLOCK_SLOTS: usize = 256;

/// Pages around one that is read come with it, so many bytes on Linux; they are left with it. A multiple of a machine's page.
const AROUND_BYTES: usize = 64 << 10;

/// A file mapped into memory to be read.
#[derive(Debug)]
pub struct Mapped {
    map: Mmap,
    slot: &'static Slot,
    left: Mutex<Vec<Range<usize>>>,
}

/// Bytes that were left and are not given back yet: of a map and, about, of all maps. Each time that pages are given back all processors
/// that the process runs on are interrupted, which takes longer than to map what is read next.
const LEFT_BYTES_MAX: usize = 256 << 10;
const LEFT_IN_ALL_MAX: usize = 4 << 20;

/// Bytes that were left, of all maps.
static LEFT_IN_ALL: AtomicUsize = AtomicUsize::new(0);

impl Mapped {
    /// Maps a whole file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn map(file: &File) -> io::Result<Self> {
        install()?;
        // SAFETY: bytes of a mapped file may change while they are read, which nothing can rule out. The files of a store
        // are never changed once they are written; bytes are checked before they are believed, what is taken from them
        // is bounded where it is used, and pages that are gone read as zeros and are reported.
        let map = unsafe { Mmap::map(file) }?;
        let start = map.as_ptr() as usize;
        let left = Mutex::default();
        Ok(Mapped { slot: take_slot(start, start + map.len()), map, left })
    }

    /// Says that a range of bytes was read and may be left: its pages need not be in the memory of the process any more. They stay in
    /// the page cache as long as there is room, and are read again as they were. Only a hint; ranges are given back together.
    pub fn leave(&self, start: u64, bytes: u64) {
        let (Ok(start), Ok(bytes)) = (usize::try_from(start), usize::try_from(bytes)) else {
            return;
        };
        let first = start / AROUND_BYTES * AROUND_BYTES;
        let end = start.saturating_add(bytes).checked_next_multiple_of(AROUND_BYTES);
        let end = end.map_or(self.map.len(), |end| end.min(self.map.len()));
        if first >= end {
            return;
        }
        let mut left = lock(&self.left);
        let before = bytes_of(&left);
        add_range(&mut left, first..end);
        let bytes = bytes_of(&left);
        let in_all = LEFT_IN_ALL.fetch_add(bytes - before, Ordering::Relaxed) + bytes - before;
        if bytes < LEFT_BYTES_MAX && in_all < LEFT_IN_ALL_MAX {
            return;
        }
        LEFT_IN_ALL.fetch_sub(bytes, Ordering::Relaxed);
        let given_back = std::mem::take(&mut *left);
        drop(left);
        for Range { start, end } in given_back {
            // SAFETY: the map is shared and only read: what is dropped is read from the file again, with the same bytes. Where zeros were
            // put in the place of what could not be read, zeros come again.
            let _ = unsafe {
                self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start)
            };
        }
    }

    /// Whether some of what was read was not the file: zeros in the place of what could not be read. Ask after reading.
    pub fn is_damaged(&self) -> bool {
        // The reads before must not be moved behind the look at the mark.
        fence(Ordering::SeqCst);
        self.slot.damaged.load(Ordering::SeqCst)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Before the map goes: its addresses may be another's then.
        self.slot.set(0, 0);
        LEFT_IN_ALL.fetch_sub(bytes_of(&lock(&self.left)), Ordering::Relaxed);
        lock(&FREE).push(self.slot);
    }
}

fn bytes_of(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(Range::len).sum()
}

/// Adds a range to ranges that do not meet, and joins those that it meets.
fn add_range(ranges: &mut Vec<Range<usize>>, mut added: Range<usize>) {
    ranges.retain(|range| {
        let meets = range.start <= added.end && added.start <= range.end;
        if meets {
            added = range.start.min(added.start)..range.end.max(added.end);
        }
        !meets
    });
    ranges.push(added);
}

/// Where a map lies.
#[derive(Debug)]
struct Slot {
    /// Odd while the addresses change.
    version: AtomicUsize,
    start: AtomicUsize,
    /// After its last byte.
    end: AtomicUsize,
    damaged: AtomicBool,
}

impl Slot {
    const fn new() -> Self {
        Slot {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            damaged: AtomicBool::new(false),
        }
    }

    /// Gives the entry to another map; done by its only owner.
    fn set(&self, start: usize, end: usize) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.damaged.store(false, Ordering::SeqCst);
        self.start.store(start, Ordering::SeqCst);
        self.end.store(end, Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// The end of the map, if the address is in it.
    fn end_of(&self, address: usize) -> Option<usize> {
        let before = self.version.load(Ordering::SeqCst);
        let (start, end) = (self.start.load(Ordering::SeqCst), self.end.load(Ordering::SeqCst));
        // One that changes is not the map of the reader, who holds his.
        let whole = before.is_multiple_of(2) && self.version.load(Ordering::SeqCst) == before;
        (whole && (start..end).contains(&address)).then_some(end)
    }
}

/// Some entries, and those after them.
struct Block {
    slots: [Slot; BLOCK_SLOTS],
    next: OnceLock<Box<Block>>,
}

impl Block {
    const fn new() -> Self {
        Block { slots: [const { Slot::new() }; BLOCK_SLOTS], next: OnceLock::new() }
    }
}

static FIRST: Block = Block::new();
/// Entries that no map has.
static FREE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());
/// Whether the entries of the first block were given out.
static FIRST_IS_USED: AtomicBool = AtomicBool::new(false);

fn take_slot(start: usize, end: usize) -> &'static Slot {
    let mut free = lock(&FREE);
    let slot = match free.pop() {
        Some(slot) => slot,
        None => {
            let mut block = &FIRST;
            if FIRST_IS_USED.swap(true, Ordering::SeqCst) {
                while let Some(next) = block.next.get() {
                    block = next;
                }
                block = block.next.get_or_init(|| Box::new(Block::new()));
            }
            free.extend(&block.slots[1..]);
            &block.slots[0]
        }
    };
    drop(free);
    slot.set(start, end);
    slot
}

/// What was done about SIGBUS before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();
/// Bytes of a page of the machine.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4_096);

/// Bytes of a page of the machine.
fn page_bytes() -> usize {
    // SAFETY: the call takes a number and gives one.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()).unwrap_or(4_096)
}

/// Puts the handler in place, once in the life of a process.
fn install() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = lock(&INSTALLED);
    if *installed {
        return Ok(());
    }
    PAGE_BYTES.store(page_bytes(), Ordering::SeqCst);
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the handler of a signal, into memory of its type.
    if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above filled it; it is plain data, of which zeros are a value.
    let before = unsafe { before.assume_init() };
    let _ = BEFORE.set(before);
    // SAFETY: zeros are a `sigaction` with an empty mask and without flags.
    let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    ours.sa_sigaction = on_bus_error as *const () as usize;
    // On the stack for signals, if the thread has one: Rust's own handler, to which we pass on, tells an overflow of
    // the stack by it.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler has the form that SA_SIGINFO says, and does only what a handler may.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    *installed = true;
    Ok(())
}

/// Called by the system in the thread whose read failed.
extern "C" fn on_bus_error(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the system gives the address of a `siginfo_t`, whose code it always fills.
    let code = unsafe { (*info).si_code };
    // Codes up to 0 are signals that a process sent; they have no address.
    if code > 0 {
        // SAFETY: a SIGBUS of the system's has the address.
        let address = unsafe { (*info).si_addr() } as usize;
        if let Some((slot, end)) = find(address) {
            slot.damaged.store(true, Ordering::SeqCst);
            if put_zeros(address, end) {
                return;
            }
        }
    }
    pass_on(signal, code, info, context);
}

/// The map that an address is in, and its end.
fn find(address: usize) -> Option<(&'static Slot, usize)> {
    let mut block = Some(&FIRST);
    while let Some(here) = block {
        for slot in &here.slots {
            if let Some(end) = slot.end_of(address) {
                return Some((slot, end));
            }
        }
        block = here.next.get().map(|next| &**next);
    }
    None
}

/// Puts zeros in the place of the page of an address and of all after it in its map: after the end of a cut file each
/// page would fail by itself, and a process has only so many separate maps.
fn put_zeros(address: usize, end: usize) -> bool {
    let from = address & !(PAGE_BYTES.load(Ordering::SeqCst) - 1);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the place of the number of the last error, which is this thread's.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let errno_before = unsafe { *errno };
    let place = from as *mut libc::c_void;
    // SAFETY: the range is within one map of this process, which is only read and lives as long as the reader that
    // failed holds it; it stays mapped and readable, and unmapping the whole later unmaps this too. The call is a system
    // call that takes no lock of this process.
    let mapped = unsafe { libc::mmap(place, end - from, libc::PROT_READ, flags, -1, 0) };
    // SAFETY: as above.
    unsafe { *errno = errno_before };
    mapped == place
}

/// Does what would have been done without this module.
fn pass_on(
    signal: libc::c_int,
    code: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let handler = BEFORE.get().map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let has_info = BEFORE.get().is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    if handler == libc::SIG_IGN && code <= 0 {
        return;
    }
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: takes the handler away; zeros are SIG_DFL. A read that failed fails again and ends the process, as it
        // would have; a signal that was sent is sent again.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, &raw const default, ptr::null_mut());
            if code <= 0 {
                libc::raise(signal);
            }
        }
    } else if has_info {
        type WithInfo = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
        // SAFETY: the system said that it is a handler of this form.
        let handler = unsafe { std::mem::transmute::<usize, WithInfo>(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: as above, of the other form.
        let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(libc::c_int)>(handler) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_was_cut_reads_as_zeros_and_is_told() {
        const PAGES: usize = 4;
        let page = page_bytes();
        let file = tempfile::tempfile().unwrap();
        file.set_len((PAGES * page) as u64).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; PAGES * page], 0).unwrap();
        let (cut, other) = (Mapped::map(&file).unwrap(), Mapped::map(&file).unwrap());
        file.set_len(page as u64).unwrap();
        assert!(!cut.is_damaged());
        assert_eq!((cut[page - 1], cut[page], cut[PAGES * page - 1]), (7, 0, 0));
        assert!(cut.is_damaged() && !other.is_damaged());
        drop(cut);
        assert_eq!(other[2 * page], 0);
        assert!(other.is_damaged());
        let again = Mapped::map(&file).unwrap();
        assert!(!again.is_damaged() && again.len() == page);
    }

    #[test]
    fn ranges_that_meet_are_joined() {
        let mut ranges = Vec::new();
        for range in [4..6, 0..2, 8..9, 2..4, 8..9, 9..10] {
            add_range(&mut ranges, range);
        }
        ranges.sort_by_key(|range| range.start);
        assert_eq!((bytes_of(&ranges), ranges), (8, vec![0..6, 8..10]));
    }

    #[test]
    fn what_was_left_is_given_back_together_and_read_again_as_it_was() {
        const AROUND: u64 = AROUND_BYTES as u64;
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..16 * AROUND_BYTES).map(|at| (at / AROUND_BYTES) as u8).collect();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
        let map = Mapped::map(&file).unwrap();
        let resident = || {
            let start = map.as_ptr() as usize;
            let of_map = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let of_map = of_map.split_once(&format!("{start:x}-")).unwrap().1;
            let kib = of_map.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
            kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
        };
        assert_eq!(&*map, bytes);
        assert_eq!(resident(), bytes.len());
        map.leave(0, AROUND);
        map.leave(2 * AROUND + 9, 5);
        assert_eq!(resident(), bytes.len());
        map.leave(AROUND, AROUND);
        map.leave(9 * AROUND, AROUND);
        assert_eq!(resident(), bytes.len() - LEFT_BYTES_MAX);
        assert!(lock(&map.left).is_empty());
        // The last is given back with the map.
        map.leave(15 * AROUND, u64::MAX);
        assert_eq!(&*map, bytes);
        assert_eq!(bytes_of(&lock(&map.left)), AROUND_BYTES);
    }

    #[test]
    fn many_maps_are_found_in_the_table() {
        let page = page_bytes();
        let file = tempfile::tempfile().unwrap();
        file.set_len(2 * page as u64).unwrap();
        let maps: Vec<Mapped> = (0..3 * BLOCK_SLOTS).map(|_| Mapped::map(&file).unwrap()).collect();
        file.set_len(0).unwrap();
        for map in maps.iter().step_by(37) {
            assert!(!map.is_damaged());
            assert_eq!(map[page], 0);
            assert!(map.is_damaged());
        }
    }
}

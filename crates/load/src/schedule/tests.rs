//! Loads of jobs that do nothing, by workers that begin and end in any order. A run is told by its seed.

use std::collections::BTreeSet;

use super::*;

/// A job of a load that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nothing {
    /// A column of a partition.
    Column(usize),
    /// What goes ahead of a partition.
    Ahead(usize),
    /// What a target leaves to be done.
    Left(Lane),
}

impl Job for Nothing {
    fn lane(&self) -> Lane {
        match self {
            Nothing::Left(lane) => *lane,
            _ => Lane::Any,
        }
    }
}

/// Numbers that look random, the same for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// What a load is like besides its shape.
#[derive(Debug, Clone, Default)]
struct Input {
    chunks: usize,
    /// Columns of a partition that wait for it.
    columns: usize,
    /// Bytes that a chunk holds.
    chunk_bytes: usize,
    /// Chunks whose starts are speculated on in vain.
    misread: BTreeSet<usize>,
    /// The first chunk that the types are too narrow for.
    unfit: Option<usize>,
    /// Partitions that wait for an answer from elsewhere.
    awaited: BTreeSet<usize>,
    /// Jobs of each lane that a target leaves when a partition is sealed.
    left: usize,
}

/// A load by workers.
struct Load {
    input: Input,
    schedule: Schedule<Nothing>,
    readers: usize,
    merges: usize,
    running: Vec<Task<Nothing>>,
    /// Chunks that were read and wait for those before them, and whether that was for the second time.
    returned: BTreeMap<usize, bool>,
    /// Chunks that were read, in order, and those that were read again.
    reads: Vec<usize>,
    rereads: Vec<usize>,
    answers: BTreeSet<usize>,
    /// Jobs of columns that are not done, by partition.
    columns: BTreeMap<usize, usize>,
    /// Partitions whose chunks are all verified.
    completed: usize,
    /// Partitions that workers were given to seal, in that order.
    sealed: Vec<usize>,
    ends: usize,
}

impl Load {
    fn new(input: Input, shape: Shape) -> Self {
        let (readers, merges) = (shape.readers, shape.merges);
        Load {
            answers: BTreeSet::new(),
            input,
            schedule: Schedule::new(shape),
            readers,
            merges,
            running: Vec::new(),
            returned: BTreeMap::new(),
            reads: Vec::new(),
            rereads: Vec::new(),
            columns: BTreeMap::new(),
            completed: 0,
            sealed: Vec::new(),
            ends: 0,
        }
    }

    /// Lets a worker take a task; `false` if there is none now.
    fn begin(&mut self) -> bool {
        let Some(mut task) = self.schedule.take_task() else { return false };
        if task == Task::TakeChunk {
            if self.reads.len() == self.input.chunks {
                self.schedule.end_chunks();
                self.complete();
                return true;
            }
            task = Task::Chunk(self.schedule.number_chunk());
        }
        self.check(&task);
        match task {
            Task::Chunk(chunk) => self.reads.push(chunk),
            Task::Seal(partition) => self.sealed.push(partition),
            _ => {}
        }
        self.running.push(task);
        true
    }

    /// Checks that a task may be done now.
    fn check(&self, task: &Task<Nothing>) {
        let chunk = |task: &Task<Nothing>| matches!(task, Task::Chunk(_) | Task::ChunkAgain(_));
        let merge = |task: &Task<Nothing>| matches!(task, Task::Job(Nothing::Left(Lane::Merge)));
        match task {
            Task::Chunk(number) | Task::ChunkAgain(number) => {
                let reading = self.running.iter().filter(|task| chunk(task)).count();
                assert!(reading < self.readers, "{reading} chunks are read already");
                let partition = self.schedule.partition_of(*number);
                let filled = |p: &usize| {
                    *p < self.completed
                        && !self.columns.contains_key(p)
                        && !self.answers.contains(p)
                };
                let first = (0..).take_while(filled).count();
                assert!(partition < first + PARTITIONS_IN_FLIGHT, "{number} with {first} done");
                let large = |p: &usize| self.bytes_of(*p) > self.schedule.shape.large_bytes;
                assert!(!self.columns.keys().any(large), "{number} beside {:?}", self.columns);
            }
            Task::Job(Nothing::Left(Lane::Merge)) => {
                let merging = self.running.iter().filter(|task| merge(task)).count();
                assert!(merging < self.merges, "{merging} are merged already");
            }
            Task::Seal(partition) => {
                assert_eq!(*partition, self.sealed.len());
                assert!(!self.columns.contains_key(partition));
                assert!(!self.answers.contains(partition));
            }
            Task::End => {
                assert_eq!((self.ends, self.columns.len()), (0, 0));
                let waits = |task: &Task<Nothing>| {
                    matches!(task, Task::Job(Nothing::Ahead(_)) | Task::Seal(_))
                };
                assert!(!self.running.iter().any(|task| waits(task) || chunk(task)));
            }
            Task::Job(_) | Task::TakeChunk => {}
        }
    }

    /// Lets the worker of a task end it.
    fn end(&mut self, at: usize) {
        match self.running.remove(at) {
            Task::Chunk(chunk) => self.return_chunk(chunk, false),
            Task::ChunkAgain(chunk) => {
                self.rereads.push(chunk);
                self.return_chunk(chunk, true);
            }
            Task::Job(Nothing::Column(partition)) => {
                let left = self.columns.get_mut(&partition).expect("a complete partition");
                *left -= 1;
                if *left == 0 {
                    self.columns.remove(&partition);
                }
                self.schedule.done_of(partition);
            }
            Task::Job(Nothing::Ahead(_)) => self.schedule.done(Before::End, Lane::Any),
            Task::Job(Nothing::Left(lane)) => self.schedule.done(Before::Finish, lane),
            Task::Seal(_) => {
                for lane in [Lane::Merge, Lane::Any].repeat(self.input.left) {
                    self.schedule.add(Before::Finish, Nothing::Left(lane));
                }
                self.schedule.told_sealed();
            }
            Task::End => {
                self.ends += 1;
                self.schedule.done(Before::Finish, Lane::Any);
            }
            Task::TakeChunk => unreachable!("it became a chunk"),
        }
    }

    fn return_chunk(&mut self, chunk: usize, again: bool) {
        self.schedule.read();
        if self.schedule.is_cut() {
            self.complete();
            return;
        }
        self.returned.insert(chunk, again);
        while let Some(again) = self.returned.remove(&self.schedule.frontier()) {
            let chunk = self.schedule.frontier();
            if !again && self.input.misread.contains(&chunk) {
                self.schedule.read_again();
                return;
            }
            if self.input.unfit == Some(chunk) {
                self.schedule.cut();
                self.returned.clear();
                self.complete();
                return;
            }
            self.schedule.verify();
            let partition = self.schedule.partition_of(chunk);
            if self.input.awaited.remove(&partition) {
                self.answers.insert(partition);
                self.schedule.wait_for(Before::Seal(partition));
            }
            self.schedule.add(Before::End, Nothing::Ahead(partition));
            self.complete();
        }
    }

    fn complete(&mut self) {
        let Some(partition) = self.schedule.take_complete() else { return };
        self.completed = partition + 1;
        if self.input.columns > 0 {
            self.columns.insert(partition, self.input.columns);
        }
        let bytes = self.bytes_of(partition);
        let jobs = vec![Nothing::Column(partition); self.input.columns];
        self.schedule.begin(partition, bytes, jobs);
    }

    /// Answers one of those that are awaited; `false` if there is none.
    fn answer(&mut self, at: usize) -> bool {
        let Some(partition) = self.answers.iter().nth(at).copied() else { return false };
        self.answers.remove(&partition);
        self.schedule.done(Before::Seal(partition), Lane::Any);
        true
    }

    /// Runs to the end with so many workers, `next` choosing whose task ends.
    fn run(&mut self, workers: usize, mut next: impl FnMut(usize) -> usize) {
        while !self.schedule.is_finished() {
            let more = self.running.len() < workers && next(3) > 0 && self.begin();
            if more {
                continue;
            }
            if self.running.is_empty() || next(8) == 0 {
                let waits = self.answers.len();
                let answered = waits > 0 && self.answer(next(waits));
                // Nobody does anything, and nothing comes from elsewhere: then there is a task.
                assert!(answered || !self.running.is_empty() || self.begin(), "nobody has a task");
                continue;
            }
            self.end(next(self.running.len()));
        }
        assert!(self.running.is_empty(), "{:?}", self.running);
        assert_eq!((self.ends, self.schedule.take_task()), (1, None));
    }
}

impl Load {
    /// Bytes that the chunks of a partition hold.
    fn bytes_of(&self, partition: usize) -> usize {
        let Input { chunks, chunk_bytes, .. } = self.input;
        let before = |p| self.schedule.shape.partitions.chunks_before(p).min(chunks);
        chunk_bytes * (before(partition + 1) - before(partition))
    }
}

fn shape(input: &Input) -> Shape {
    Shape {
        chunks: Some(input.chunks),
        ahead_max: usize::MAX,
        partitions: Partitions::of_chunks(4),
        readers: 3,
        large_bytes: usize::MAX,
        merges: 1,
        keeps_partitions: false,
    }
}

/// An input and a shape of a seed.
fn drawn(random: &mut Random) -> (Input, Shape) {
    let chunks = random.below(40);
    let some = |random: &mut Random, share: usize, of: usize| {
        (0..of).filter(|_| random.below(share) == 0).collect::<BTreeSet<usize>>()
    };
    let input = Input {
        chunks,
        columns: random.below(4),
        chunk_bytes: random.below(3),
        misread: some(random, 4, chunks),
        unfit: None,
        awaited: some(random, 3, chunks),
        left: random.below(3),
    };
    let stream = random.below(2) == 0;
    let each = 1 + random.below(6);
    let partitions = match !stream && random.below(2) == 0 {
        true => Partitions::with_small_ones_at_the_end(each, chunks),
        false => Partitions::of_chunks(each),
    };
    let shape = Shape {
        chunks: (!stream).then_some(chunks),
        ahead_max: 1 + random.below(9),
        partitions,
        readers: 1 + random.below(5),
        large_bytes: random.below(8),
        merges: 1 + random.below(2),
        keeps_partitions: random.below(2) == 0,
    };
    (input, shape)
}

#[test]
fn partitions_are_sealed_in_order_and_once_whoever_is_faster() {
    for seed in 1..=1_500 {
        let mut random = Random(seed);
        let (input, shape) = drawn(&mut random);
        let partitions = shape.partitions;
        let mut load = Load::new(input.clone(), shape);
        let workers = 1 + random.below(8);
        load.run(workers, |bound| random.below(bound));
        let sealed: Vec<usize> =
            (0..).take_while(|p| partitions.chunks_before(*p) < input.chunks).collect();
        assert_eq!(load.sealed, sealed, "seed {seed}");
        assert_eq!(load.reads, (0..input.chunks).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(load.rereads, input.misread.into_iter().collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_leg_ends_before_the_first_chunk_that_does_not_fit() {
    for seed in 1..=1_000 {
        let mut random = Random(seed);
        let (mut input, shape) = drawn(&mut random);
        input.chunks += 1;
        let unfit = random.below(input.chunks);
        input.unfit = Some(unfit);
        // What is left to the next leg is awaited by nobody.
        input.awaited.clear();
        let shape = Shape { chunks: shape.chunks.map(|_| input.chunks), ..shape };
        let (each, keeps) = (1 + random.below(6), shape.keeps_partitions);
        let partitions = match shape.chunks.filter(|_| random.below(2) == 0) {
            Some(chunks) => Partitions::with_small_ones_at_the_end(each, chunks),
            None => Partitions::of_chunks(each),
        };
        let shape = Shape { partitions, ..shape };
        let mut load = Load::new(input, shape);
        let workers = 1 + random.below(8);
        load.run(workers, |bound| random.below(bound));
        assert!(load.schedule.is_cut());
        assert_eq!(load.schedule.frontier(), unfit, "seed {seed}");
        let is_sealed = |p: &usize| match keeps {
            true => {
                partitions.chunks_before(*p + 1) <= unfit && partitions.chunks_before(*p) < unfit
            }
            false => partitions.chunks_before(*p) < unfit,
        };
        let sealed: Vec<usize> = (0..).take_while(is_sealed).collect();
        assert_eq!(load.sealed, sealed, "seed {seed}");
    }
}

#[test]
fn a_load_goes_on_behind_the_partitions_that_are_there() {
    let input = Input { chunks: 10, columns: 2, ..Input::default() };
    for known in 0..=3 {
        let mut load = Load::new(input.clone(), shape(&input));
        load.schedule.skip(known);
        load.sealed = (0..known).collect();
        load.completed = known;
        let mut random = Random(known as u64 + 1);
        load.run(3, |bound| random.below(bound));
        assert_eq!(load.sealed, [0, 1, 2]);
        let reads: Vec<usize> = (known * 4..10).collect();
        assert_eq!(load.reads, reads, "{known} are there");
    }
}

/// Symptom that this guards against: the others fill memory while one worker sleeps.
#[test]
fn a_worker_that_sleeps_lets_others_fill_two_partitions_and_no_more() {
    let input = Input { chunks: 100, columns: 1, ..Input::default() };
    let shape = Shape { readers: 50, ..shape(&input) };
    let mut load = Load::new(input, shape);
    // It has the first chunk.
    assert!(load.begin());
    while load.begin() {}
    let last = load.running.len();
    for at in (1..last).rev() {
        load.end(at);
    }
    assert!(!load.begin(), "{:?}", load.running);
    assert_eq!(load.reads, (0..8).collect::<Vec<_>>());
    load.end(0);
    let mut random = Random(1);
    load.run(2, |bound| random.below(bound));
    assert_eq!(load.sealed.len(), 25);
}

#[test]
fn a_stream_is_not_read_further_ahead_than_it_may_be() {
    let input = Input { chunks: 100, columns: 1, ..Input::default() };
    let shape = Shape { chunks: None, ahead_max: 3, readers: 50, ..shape(&input) };
    let mut load = Load::new(input, shape);
    while load.begin() {}
    assert_eq!(load.reads, [0, 1, 2]);
    // Those behind the first wait for it.
    load.end(2);
    load.end(1);
    assert!(!load.begin());
    load.end(0);
    while load.begin() {}
    assert_eq!(load.reads, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn memory_is_emptied_before_it_is_filled() {
    let input = Input { chunks: 8, columns: 2, ..Input::default() };
    let mut load = Load::new(input.clone(), shape(&input));
    let mut tasks = Vec::new();
    for _ in 0..4 + 4 + 2 + 1 + 1 {
        assert!(load.begin());
        tasks.extend(load.running.clone());
        load.end(0);
    }
    let ahead = Task::Job(Nothing::Ahead(0));
    let mut expected: Vec<Task<Nothing>> =
        (0..4).flat_map(|chunk| [Task::Chunk(chunk), ahead.clone()]).collect();
    expected.extend([Task::Job(Nothing::Column(0)), Task::Job(Nothing::Column(0))]);
    expected.extend([Task::Seal(0), Task::Chunk(4)]);
    assert_eq!(tasks, expected);
}

#[test]
fn of_the_next_partition_few_chunks_are_read_before_the_one_before_is_complete() {
    let shape = Shape {
        chunks: Some(40),
        ahead_max: usize::MAX,
        partitions: Partitions::of_chunks(10),
        readers: 3,
        large_bytes: usize::MAX,
        merges: 1,
        keeps_partitions: false,
    };
    let mut schedule: Schedule<Nothing> = Schedule::new(shape);
    let mut given = Vec::new();
    // The first chunk takes as long as it takes, and all others are read meanwhile.
    while let Some(task) = schedule.take_task() {
        let Task::Chunk(chunk) = task else { panic!("{task:?}") };
        given.push(chunk);
        if chunk > 0 {
            schedule.read();
        }
    }
    assert_eq!(given, (0..10).collect::<Vec<_>>());
    // The last one does.
    (0..9).for_each(|_| schedule.verify());
    while let Some(Task::Chunk(chunk)) = schedule.take_task() {
        given.push(chunk);
        schedule.read();
    }
    assert_eq!(given, (0..9 + 3 + CHUNKS_AHEAD).collect::<Vec<_>>());
    // It is verified.
    schedule.verify();
    assert_eq!(schedule.take_complete(), Some(0));
    assert_eq!(schedule.take_task(), Some(Task::Chunk(14)));
}

#[test]
fn beside_a_large_partition_no_chunk_is_read() {
    let input = Input { chunks: 8, columns: 1, chunk_bytes: 3, ..Input::default() };
    let mut load = Load::new(input.clone(), Shape { large_bytes: 11, ..shape(&input) });
    while load.completed == 0 {
        assert!(load.begin());
        load.end(0);
    }
    while load.begin() {}
    assert!(!load.running.iter().any(|task| matches!(task, Task::Chunk(_))));
    let column = load.running.iter().position(|task| *task == Task::Job(Nothing::Column(0)));
    load.end(column.expect("a column to be compressed"));
    while load.begin() {}
    assert!(load.running.contains(&Task::Chunk(4)), "{:?}", load.running);
}

#[test]
fn a_load_without_chunks_ends() {
    for chunks in [Some(0), None] {
        let input = Input::default();
        let mut load = Load::new(input.clone(), Shape { chunks, ..shape(&input) });
        let mut random = Random(1);
        load.run(1, |bound| random.below(bound));
        assert!(load.sealed.is_empty());
    }
}

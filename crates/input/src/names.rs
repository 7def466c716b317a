//! Names in few bytes: a load may have a million inputs, and a text of its own takes 24 bytes and an allocation.
//!
//! ```text
//!   runs    (from 0, "data/2026/", at 0)  (from 3, "data/2027/", at 30)
//!   text    part-0.csvpart-1.csvpart-2.csv|part-0.csv ...
//!   ends             10        20        30          10            from where the run stands
//! ```
//!
//! Names that follow each other mostly lie in one folder, which is there once for all of them.
//!
//! Cost: 4 bytes a name beside what follows its folder; 48 bytes and the folder for a run.

/// The longest text of a run: ends are 32 bits.
const RUN_BYTES_MAX: usize = u32::MAX as usize;

/// Names in an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    runs: Vec<Run>,
    text: String,
    /// Where each ends, from the start of its run.
    ends: Vec<u32>,
}

/// Names that follow each other and lie in one folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    /// The first of them.
    first: usize,
    /// Where their text stands.
    at: usize,
    folder: Box<str>,
}

impl Names {
    /// Number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a name.
    ///
    /// # Panics
    /// With a name of 4 GiB, which no path and no message has.
    pub fn push(&mut self, name: &str) {
        assert!(name.len() <= RUN_BYTES_MAX, "a name of {} bytes", name.len());
        let (folder, rest) = name.split_at(name.rfind('/').map_or(0, |at| at + 1));
        let last = self.runs.last();
        let fits = |run: &&Run| {
            *run.folder == *folder && self.text.len() - run.at <= RUN_BYTES_MAX - rest.len()
        };
        let at = match last.filter(fits) {
            Some(run) => run.at,
            None => {
                let (first, at) = (self.ends.len(), self.text.len());
                self.runs.push(Run { first, at, folder: folder.into() });
                at
            }
        };
        self.text.push_str(rest);
        self.ends.push((self.text.len() - at) as u32);
    }

    /// A name as its folder, with the last separator, and what follows.
    ///
    /// # Panics
    /// When there is no such name.
    pub fn parts(&self, number: usize) -> (&str, &str) {
        let run = &self.runs[self.runs.partition_point(|run| run.first <= number) - 1];
        let start = if number == run.first { 0 } else { self.ends[number - 1] as usize };
        (&run.folder, &self.text[run.at + start..run.at + self.ends[number] as usize])
    }

    /// A name.
    ///
    /// # Panics
    /// When there is no such name.
    pub fn get(&self, number: usize) -> String {
        let (folder, rest) = self.parts(number);
        [folder, rest].concat()
    }

    /// The names in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = String> + Clone {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Bytes that it takes.
    pub fn held_bytes(&self) -> usize {
        // A run has its folder, which is mostly as long as those before.
        let folders: usize = self.runs.first().map_or(0, |run| run.folder.len());
        self.text.len()
            + self.ends.len() * size_of::<u32>()
            + self.runs.len() * (size_of::<Run>() + folders)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<T: IntoIterator<Item = S>>(names: T) -> Self {
        let mut all = Names::default();
        names.into_iter().for_each(|name| all.push(name.as_ref()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_whatever_their_folders_are() {
        let given = [
            "a.csv",
            "b.csv",
            "",
            "data/a.csv",
            "data/",
            "data/é.csv",
            "/",
            "/x",
            "data/x/y.csv",
            "data/a.csv",
            "-",
            "a//b",
            "a//",
        ];
        let names: Names = given.iter().collect();
        assert_eq!(names.iter().collect::<Vec<_>>(), given);
        assert_eq!(names.len(), given.len());
        assert_eq!(names, given.iter().collect());
        assert_ne!(names, given[1..].iter().collect());
    }

    #[test]
    fn a_million_names_of_one_folder_take_few_bytes() {
        let folder = "warehouse-export-2026-11-23/lineitem/";
        let names: Names = (0..1000).map(|n| format!("{folder}part-{n:07}.csv")).collect();
        let rest = "part-0000000.csv".len() + size_of::<u32>();
        assert!(names.held_bytes() <= 1000 * rest + 100, "{}", names.held_bytes());
        assert_eq!(names.get(999), format!("{folder}part-0000999.csv"));
    }
}

//! Rejects by kind: how many, and where the first of each are. A thousand records of one fault do not hide
//! the one of another.

use coload_source::Reject;
use coload_types::Place;

/// Kinds that are told apart; the rest is counted together.
const KINDS_MAX: usize = 100;
/// Rejects of a kind that are told with their place.
pub const REJECTS_OF_KIND_MAX: usize = 10;
/// Bytes of a value that are kept.
const VALUE_BYTES_MAX: usize = 256;

/// Rejects of one column for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectKind {
    /// The column at fault; none when it is the record as a whole.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What helps.
    pub advice: String,
    /// How many there are.
    pub count: u64,
    /// The first, at most ten: place and value, of which no more is kept than a message shows.
    pub first: Vec<(Place, Vec<u8>)>,
}

/// Counts of rejects.
#[derive(Debug, Default)]
pub struct RejectKinds {
    kinds: Vec<RejectKind>,
    others: u64,
}

impl RejectKinds {
    /// Counts a reject.
    pub fn add(&mut self, reject: &Reject) {
        let same = |kind: &RejectKind| kind.reason == reject.reason && kind.column == reject.column;
        let kind = match self.kinds.iter().position(same) {
            Some(index) => &mut self.kinds[index],
            None if self.kinds.len() == KINDS_MAX => {
                self.others += 1;
                return;
            }
            None => {
                self.kinds.push(RejectKind {
                    column: reject.column.clone(),
                    reason: reject.reason.clone(),
                    advice: reject.advice.clone(),
                    count: 0,
                    first: Vec::new(),
                });
                let last = self.kinds.len() - 1;
                &mut self.kinds[last]
            }
        };
        kind.count += 1;
        if kind.first.len() < REJECTS_OF_KIND_MAX {
            let value = reject.value();
            let value = &value[..value.len().min(VALUE_BYTES_MAX)];
            kind.first.push((reject.place.clone(), value.to_vec()));
        }
    }

    /// The kinds in the order in which they were met.
    pub fn into_kinds(self) -> Vec<RejectKind> {
        let mut kinds = self.kinds;
        if self.others > 0 {
            kinds.push(RejectKind {
                column: None,
                reason: format!("of more than {KINDS_MAX} kinds"),
                advice: "--rejects FILE, which has them all".to_owned(),
                count: self.others,
                first: Vec::new(),
            });
        }
        kinds
    }
}

#[cfg(test)]
mod tests {
    use coload_source::RejectedValue;

    use super::*;

    fn reject(column: Option<&str>, reason: String, line: u64) -> Reject {
        Reject {
            place: Place { file: "a.csv".to_owned(), line, byte: 0, field: 0 },
            part: None,
            column: column.map(str::to_owned),
            value: RejectedValue::Apart(vec![b'x'; 1000]),
            reason,
            advice: String::new(),
            raw: Vec::new(),
        }
    }

    #[test]
    fn the_first_ten_of_a_kind_are_told_and_all_are_counted() {
        let mut kinds = RejectKinds::default();
        for line in 1..=50 {
            kinds.add(&reject(Some("a"), "is no number".to_owned(), line));
        }
        kinds.add(&reject(Some("b"), "is no number".to_owned(), 51));
        for number in 0..200 {
            kinds.add(&reject(None, format!("has {number} fields"), 52));
        }
        let kinds = kinds.into_kinds();
        assert_eq!((kinds[0].count, kinds[0].first.len(), kinds[0].first[9].0.line), (50, 10, 10));
        assert_eq!((kinds[1].count, kinds[1].first[0].1.len()), (1, VALUE_BYTES_MAX));
        assert_eq!(kinds.len(), KINDS_MAX + 1);
        assert_eq!(kinds.iter().map(|kind| kind.count).sum::<u64>(), 251);
    }
}

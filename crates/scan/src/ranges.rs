//! Sets of codes or values as sorted, disjoint, inclusive ranges.

/// Sorted ranges `low..=high` that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges<T> {
    ranges: Vec<(T, T)>,
}

/// A number with neighbours.
pub trait Step: Copy + Ord + Default {
    /// Smallest number of the type.
    const MIN: Self;
    /// Largest number of the type.
    const MAX: Self;
    /// The next larger, if there is one.
    fn next(self) -> Option<Self>;
    /// The next smaller, if there is one.
    fn previous(self) -> Option<Self>;
}

macro_rules! step {
    ($($ty:ident)*) => {$(
        impl Step for $ty {
            const MIN: Self = $ty::MIN;
            const MAX: Self = $ty::MAX;
            fn next(self) -> Option<Self> { self.checked_add(1) }
            fn previous(self) -> Option<Self> { self.checked_sub(1) }
        }
    )*};
}
step!(u32 i64 i128);

impl<T: Step> Ranges<T> {
    /// The union of any ranges; those with `low > high` are empty.
    pub fn union(mut ranges: Vec<(T, T)>) -> Self {
        ranges.retain(|(low, high)| low <= high);
        ranges.sort_unstable();
        let mut joined: Vec<(T, T)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match joined.last_mut() {
                Some(last) if last.1.next().is_none_or(|next| low <= next) => {
                    last.1 = last.1.max(high);
                }
                _ => joined.push((low, high)),
            }
        }
        Ranges { ranges: joined }
    }

    /// What is not in it.
    pub fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut low = Some(T::MIN);
        for (start, end) in &self.ranges {
            if let (Some(low), Some(high)) = (low, start.previous()) {
                ranges.push((low, high));
            }
            low = end.next();
        }
        if let Some(low) = low {
            ranges.push((low, T::MAX));
        }
        Ranges::union(ranges)
    }

    /// The part within `low..=high`.
    pub fn clip(&self, low: T, high: T) -> Self {
        let start = self.ranges.partition_point(|r| r.1 < low);
        let end = self.ranges.partition_point(|r| r.0 <= high);
        let clipped = self.ranges.get(start..end).unwrap_or(&[]);
        Ranges { ranges: clipped.iter().map(|r| (r.0.max(low), r.1.min(high))).collect() }
    }

    /// Whether `value` is in it.
    pub fn contains(&self, value: T) -> bool {
        let at = self.ranges.partition_point(|r| r.1 < value);
        self.ranges.get(at).is_some_and(|r| r.0 <= value)
    }

    /// Whether all of `low..=high` is in the set.
    pub fn covers(&self, low: T, high: T) -> bool {
        let at = self.ranges.partition_point(|r| r.1 < low);
        self.ranges.get(at).is_some_and(|r| r.0 <= low && high <= r.1)
    }

    /// The ranges as `(low, high)`, both inclusive, in rising order.
    pub fn as_slice(&self) -> &[(T, T)] {
        &self.ranges
    }

    /// Whether the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_joins_neighbours_and_complement_is_its_inverse() {
        let r = Ranges::<i64>::union(vec![(5, 7), (1, 2), (3, 4), (9, 8), (20, 30)]);
        assert_eq!(r.as_slice(), &[(1, 7), (20, 30)]);
        assert_eq!(r.complement().as_slice(), &[(i64::MIN, 0), (8, 19), (31, i64::MAX)]);
        assert_eq!(r.complement().complement(), r);
        assert!(r.contains(20) && !r.contains(19) && r.covers(2, 6) && !r.covers(7, 20));
        assert_eq!(r.clip(6, 21).as_slice(), &[(6, 7), (20, 21)]);
        assert!(r.clip(8, 19).is_empty());
        let all = Ranges::union(vec![(u32::MIN, u32::MAX), (3, 4)]);
        assert_eq!(all.as_slice(), &[(0, u32::MAX)]);
        assert!(all.complement().is_empty());
    }
}

//! Whether a load hurts others on the server, as far as the server tells.
//!
//! Invariant: nothing here asks; who sends asks once a second between two transactions.

use std::time::Duration;

/// How often the server is asked.
pub const EVERY: Duration = Duration::from_secs(1);
/// How long a connection pauses before a chunk while others are hurt and no other connection can be taken away.
pub const PAUSE: Duration = Duration::from_millis(200);
/// Seconds behind which replicas may be.
const LAG_S: f64 = 10.0;
/// Statements of others that may run, however few ran when the load began.
const ACTIVE: u64 = 8;

/// What others on the server do; `None` where the server does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Others {
    /// Sessions that wait for locks.
    pub waiting: Option<u64>,
    /// Statements that run.
    pub active: Option<u64>,
    /// Seconds that the slowest replica is behind.
    pub lag_s: Option<f64>,
}

/// What others did when the load began.
#[derive(Debug, Default)]
pub struct Watch {
    before: Option<Others>,
}

impl Watch {
    /// How others are hurt, if they are more than when the load began.
    pub fn judge(&mut self, now: Others) -> Option<String> {
        let Some(before) = self.before else {
            self.before = Some(now);
            return None;
        };
        let grew = |now: Option<u64>, before: Option<u64>, least: u64| {
            now.filter(|now| *now > least && *now > 2 * before.unwrap_or(0))
        };
        if let Some(waiting) = grew(now.waiting, before.waiting, 0) {
            return Some(format!("{waiting} others wait for locks"));
        }
        let lag = now.lag_s.filter(|lag| *lag > LAG_S && *lag > 2.0 * before.lag_s.unwrap_or(0.0));
        if let Some(lag) = lag {
            return Some(format!("a replica is {lag:.0} s behind"));
        }
        let active = grew(now.active, before.active, ACTIVE)?;
        Some(format!("{active} statements of others run"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_hurt_by_what_came_with_the_load() {
        let others = |waiting, active, lag_s| Others { waiting, active, lag_s };
        let judged = |before, now| {
            let mut watch = Watch::default();
            assert_eq!(watch.judge(before), None);
            watch.judge(now)
        };
        let calm = others(Some(0), Some(2), Some(0.5));
        assert_eq!(judged(calm, calm), None);
        assert_eq!(judged(Others::default(), Others::default()), None);
        let text = judged(calm, others(Some(3), Some(2), None)).expect("hurt");
        assert!(text.contains("3 others wait"), "{text}");
        assert!(judged(calm, others(None, Some(40), None)).is_some());
        assert!(judged(calm, others(None, None, Some(30.0))).is_some());
        // It was so before.
        let busy = others(Some(3), Some(40), Some(60.0));
        assert_eq!(judged(busy, busy), None);
        assert_eq!(judged(calm, others(None, Some(8), Some(9.0))), None);
    }
}

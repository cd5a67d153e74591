//! What the 10 % rule of Summary Cache would have sent for the same changes: an estimate.
//!
//! The rule publishes when a tenth of a filter's bits differ from the published copy. The number of
//! differing bits follows from the keys that were added and removed since (`model::churn`: any
//! member is equally likely to be removed). The size of an update is the minimum that information
//! theory allows (`model::limits`). So the estimate is a lower bound: no implementation of the rule
//! sends less.

use umbel::Shape;
use umbel::model::churn::{Churn, bits_of_these_only};
use umbel::model::limits::{Flips, delta_bytes, snapshot_bytes};
use umbel::model::standard;
use umbel::replica::Changed;

/// The share of bits that may differ before the rule publishes.
pub(super) const DIRTY_SHARE: f64 = 0.1;

/// The rule, applied to the changes of one set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DirtyRule {
    published: Option<Published>,
    /// Bytes that it would have sent, each update counted once.
    pub(super) bytes: f64,
    /// Updates that it would have sent.
    pub(super) updates: u64,
    /// The largest share of members that its replicas would have denied.
    pub(super) max_miss: f64,
}

/// The state of the set at the rule's last update.
#[derive(Debug, Clone, Copy)]
struct Published {
    shape: Shape,
    items: u64,
    changed: Changed,
}

impl DirtyRule {
    /// Applies the rule to the current state of the set.
    pub(super) fn observe(&mut self, shape: Shape, items: u64, changed: Changed) {
        let now = Published { shape, items, changed };
        // A home that was restarted, or whose filter has another rung, publishes everything.
        let last = self.published.filter(|last| {
            last.shape == shape
                && last.changed.added <= changed.added
                && last.changed.removed <= changed.removed
        });
        let Some(last) = last else {
            let is_first = self.published.replace(now).is_none();
            // What was published before the first observation is not counted.
            if !is_first {
                self.publish(snapshot_bytes(shape, standard::fill(shape, items)));
            }
            return;
        };
        let (flips, miss) = gap(&last, &now);
        self.max_miss = self.max_miss.max(miss);
        if flips.set + flips.cleared > DIRTY_SHARE * shape.bits() as f64 {
            self.published = Some(now);
            self.publish(delta_bytes(flips));
        }
    }

    fn publish(&mut self, bytes: f64) {
        self.updates += 1;
        self.bytes += bytes;
    }
}

/// The bits in which the published copy differs from the set, and the share of members that it
/// denies.
fn gap(last: &Published, now: &Published) -> (Flips, f64) {
    let before = last.items as f64;
    let churn = Churn {
        items: before.max(1e-9),
        adds_per_second: (now.changed.added - last.changed.added) as f64,
        removes_per_second: (now.changed.removed - last.changed.removed) as f64,
    };
    // As if all of it had happened within one second.
    let (members, ghosts) = (churn.members_after(1.0), churn.ghosts_after(1.0));
    let added = (members - churn.published_after(1.0)).max(0.0);
    let (bits, fill) = (last.shape.bits() as f64, standard::fill(last.shape, last.items));
    let flips = Flips {
        zeros: bits * (1.0 - fill),
        set: bits_of_these_only(last.shape, before, added),
        ones: bits * fill,
        cleared: bits_of_these_only(last.shape, members, ghosts),
    };
    (flips, if members > 0.0 { added / members } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_when_a_tenth_of_the_bits_differ() {
        let shape = Shape::new(1 << 17, 7).unwrap();
        let mut rule = DirtyRule::default();
        let at = |added, removed| Changed { added, removed };
        rule.observe(shape, 10_000, at(10_000, 0));
        assert_eq!((rule.updates, rule.bytes), (0, 0.0), "counting begins here");
        let mut sent_at = Vec::new();
        for step in 1..=100 {
            // Ten keys are added and ten removed.
            let before = rule.updates;
            rule.observe(shape, 10_000, at(10_000 + 10 * step, 10 * step));
            if rule.updates > before {
                sent_at.push(step);
            }
        }
        // A key sets seven bits, of which four in ten were zero; as many are cleared. A tenth of
        // 131,072 bits is reached after some 1,200 changed keys: never in a thousand.
        assert_eq!(sent_at, Vec::<u64>::new());
        rule.observe(shape, 10_000, at(15_000, 5_000));
        assert_eq!(rule.updates, 1);
        assert!(rule.bytes > 1000.0 && rule.bytes < (1 << 14) as f64, "{}", rule.bytes);
        assert!(rule.max_miss > 0.3, "{}", rule.max_miss);
        // Another rung: everything is published.
        let larger = Shape::new(1 << 18, 7).unwrap();
        let before = rule.bytes;
        rule.observe(larger, 10_000, at(15_000, 5_000));
        assert_eq!(rule.updates, 2);
        assert!(rule.bytes - before > 10_000.0);
        // A home that lost its counters starts again.
        rule.observe(larger, 0, at(0, 0));
        assert_eq!(rule.updates, 3);
    }
}

//! Messages of an inference engine, as `umbel kv follow` reads them.

use std::collections::{HashMap, HashSet};

use umbel_kv::blocks::Hashing;
use umbel_kv::event::Batch;
use umbel_kv::{BlockKey, Blocks, Changes};

/// What a sink has after some changes, tier by tier.
type Kept = HashMap<String, HashSet<BlockKey>>;

/// Applies a message twice. Whoever follows the changes has the same keys as whoever is shown all,
/// and a message with everything cleared leaves nothing.
pub fn events(bytes: &[u8]) {
    let Ok(batch) = Batch::decode(bytes) else { return };
    for hashing in [Hashing::Engine, Hashing::Canonical] {
        let (mut blocks, mut kept) = (Blocks::new(hashing, 0), Kept::new());
        for _ in 0..2 {
            blocks.apply(&batch);
            follow(&mut kept, blocks.take_changes());
        }
        assert_eq!(blocks.pending(), 0);
        let mut shown = Kept::new();
        blocks.show_all();
        follow(&mut shown, blocks.take_changes());
        assert_eq!(kept, shown);
        blocks.clear();
        follow(&mut kept, blocks.take_changes());
        assert!(blocks.is_empty() && kept.values().all(HashSet::is_empty));
    }
}

fn follow(kept: &mut Kept, changes: Vec<Changes>) {
    for Changes { tier, is_cleared, removed, added, .. } in changes {
        let keys = kept.entry(tier).or_default();
        if is_cleared {
            keys.clear();
        }
        removed.iter().for_each(|key| _ = keys.remove(key));
        keys.extend(added);
    }
}

//! Every seed of the fuzz target for events is survived.
//!
//! The seeds are made by a program: when a format has changed, make them anew with
//!
//! ```text
//! UMBEL_RECORD=1 cargo test -p umbel-kv --test integration seeds::
//! ```

use umbel_kv::stand_in::{Form, PublishedEvent, encode};

#[path = "../../../fuzz/src/events.rs"]
#[expect(unreachable_pub, reason = "it is public where the target calls it")]
mod events;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

#[test]
fn seeds_are_survived() {
    if std::env::var_os("UMBEL_RECORD").is_some() {
        record();
    }
    replay::replay(&[("kv_events", events::events)], |_| None);
}

fn record() {
    let stored = |hashes: &[u64], parent| PublishedEvent::Stored {
        hashes: hashes.to_vec(),
        parent,
        tokens: (0..4 * hashes.len() as u32).collect(),
        block_size: 4,
    };
    let all = [
        stored(&[1, 2, 3], None),
        stored(&[4], Some(3)),
        PublishedEvent::Removed(vec![2, 9]),
        PublishedEvent::Cleared,
        stored(&[1, u64::MAX], None),
    ];
    let seeds = [Form::Arrays, Form::Maps]
        .into_iter()
        .flat_map(|form| [encode(form, 1.5, &all), encode(form, 0.0, &all[..2])])
        .chain([Vec::new()]);
    replay::write("kv_events", &seeds.collect::<Vec<_>>());
}

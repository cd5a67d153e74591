//! Paper 5 by Guo, He and Yang: receiver-oriented design of filters for routing entries.
//!
//! Simulated entries use real filters: separate filters are columns of a bank, and ORs are real
//! ORs.

pub(crate) mod conditions;
pub(crate) mod decay;
pub(crate) mod delay;
pub(crate) mod example;
pub(crate) mod hashes;
mod independent;
pub(crate) mod mismatch;
pub(crate) mod overlay;
pub(crate) mod received;
pub(crate) mod shortest;
pub(crate) mod sizes;

use umbel::bank::{Bank, Candidates};
use umbel::design::{PaperDesign, routing};
use umbel::{KeyHash, Rate, Shape, StandardFilter};

use crate::home::{Keys, shape};
use crate::random::Random;

/// What filters of a few hundred bits show together.
const POSITIONS: &str = "umbel's way to find positions claims more strangers than independent hash functions do in filters of a few hundred bits";

/// Keys of each filter, and filters of an entry, in all figures that do not vary them.
const ITEMS: u64 = 30;
const FILTERS: u64 = 100;

/// The paper's designs for entries of `filters` filters at `sigma`.
fn papers(filters: u64, sigma: f64) -> routing::Papers {
    let rate = Rate::new(sigma).expect("the paper's rates are in range");
    routing::papers(ITEMS, filters, rate).expect("the paper's designs are in range")
}

fn shape_of(design: PaperDesign) -> Shape {
    shape(design.bits, design.hashes)
}

/// Filters of [`ITEMS`] new keys each.
fn filters(keys: &mut Keys, shape: Shape, count: u64) -> Vec<StandardFilter> {
    let filter = |_| {
        let mut filter = keys.standard(shape);
        filter.insert_digests(&keys.draw_many(ITEMS as usize));
        filter
    };
    (0..count).map(filter).collect()
}

/// Keys that nobody holds.
fn strangers(keys: &mut Keys, count: usize) -> Vec<KeyHash> {
    keys.draw_many(count).into_iter().map(|digest| KeyHash::from_raw(digest.get())).collect()
}

/// The share of strangers that a CUBF of these filters claims.
fn cubf(keys: &Keys, filters: &[StandardFilter], strangers: &[KeyHash]) -> f64 {
    let Some(first) = filters.first() else { return 0.0 };
    let mut bank: Bank = Bank::new(*keys.scheme(*first.scheme().shape()).hasher());
    let columns: Vec<_> = filters.iter().map(StandardFilter::bits).collect();
    bank.add_many(first.scheme(), &columns).expect("memory for a small entry");
    let (mut candidates, mut claimed) = (Candidates::new(), 0);
    bank.who_each(strangers, &mut candidates, |_, found| claimed += u64::from(!found.is_empty()));
    claimed as f64 / strangers.len() as f64
}

/// The share of strangers that an ABF of these filters claims.
fn abf(filters: &[StandardFilter], strangers: &[KeyHash]) -> f64 {
    let Some((first, rest)) = filters.split_first() else { return 0.0 };
    let mut union = first.clone();
    rest.iter().for_each(|filter| union.union_with(filter).expect("filters of one scheme"));
    let digest = |hash: &KeyHash| union.scheme().digest_of(*hash);
    let claimed = strangers.iter().filter(|hash| union.contains_digest(digest(hash)));
    claimed.count() as f64 / strangers.len() as f64
}

/// Keys of a trial, and strangers to ask for.
fn drawn(random: &mut Random, asked: usize) -> (Keys, Vec<KeyHash>) {
    let mut keys = Keys::new(random);
    let strangers = strangers(&mut keys, asked);
    (keys, strangers)
}

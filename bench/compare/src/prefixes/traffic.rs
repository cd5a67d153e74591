//! Addresses to look up.

use umbel::prefix::Table;

use crate::harness::Mix;

use super::rivals::Family;
use super::route::Route;

pub(crate) struct Traffic<P: Family> {
    pub(crate) name: &'static str,
    pub(crate) addresses: Vec<P::Address>,
}

/// Addresses within random prefixes, within prefixes by a Zipf law, and those of uniform ones that
/// match nothing.
pub(crate) fn of<P: Family>(
    umbel: &Table<P, u16>,
    routes: &[Route<P>],
    count: usize,
) -> Vec<Traffic<P>> {
    let mut random = Mix(21);
    let mut next = move || random.next().expect("it never ends");
    let mut within = move |index: usize| {
        let filler = u128::from(next()) << 64 | u128::from(next());
        routes[index].prefix.within(filler)
    };
    let matched = if routes.is_empty() { 0 } else { count };
    let existing =
        Mix(1).take(matched).map(|r| within((r % routes.len() as u64) as usize)).collect();
    let zipf = Mix(2).take(matched).map(|r| within(zipf(r, routes.len()))).collect();
    // Of tables that cover most addresses, as few as there are.
    let unmatched = Mix(3)
        .zip(Mix(4))
        .take(4 * count)
        .map(|(high, low)| P::anywhere(u128::from(high) << 64 | u128::from(low)))
        .filter(|address| umbel.lookup(address).is_none())
        .take(count)
        .collect();
    vec![
        Traffic { name: "existing", addresses: existing },
        Traffic { name: "zipf", addresses: zipf },
        Traffic { name: "unmatched", addresses: unmatched },
    ]
}

/// A rank by the law 1/rank, by the inverse of its (continuous) distribution.
fn zipf(random: u64, ranks: usize) -> usize {
    let share = random as f64 / 2f64.powi(64);
    ((ranks as f64 + 1.0).powf(share) as usize - 1).min(ranks - 1)
}

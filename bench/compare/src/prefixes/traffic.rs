//! Addresses to look up.

use crate::harness::Mix;

use super::rivals::Family;
use super::tables::Route;

pub(crate) struct Traffic<P: Family> {
    pub(crate) name: &'static str,
    pub(crate) addresses: Vec<P::Address>,
}

/// Addresses within random prefixes, uniform ones, and prefixes by a Zipf law.
pub(crate) fn of<P: Family>(routes: &[Route<P>], count: usize) -> Vec<Traffic<P>> {
    let mut random = Mix(21);
    let mut next = move || random.next().expect("it never ends");
    let mut within = move |index: usize| {
        let filler = u128::from(next()) << 64 | u128::from(next());
        routes[index].prefix.within(filler)
    };
    let existing = Mix(1).take(count).map(|r| within((r % routes.len() as u64) as usize)).collect();
    let zipf = Mix(2).take(count).map(|r| within(zipf(r, routes.len()))).collect();
    let uniform = Mix(3)
        .zip(Mix(4))
        .take(count)
        .map(|(high, low)| P::anywhere(u128::from(high) << 64 | u128::from(low)))
        .collect();
    vec![
        Traffic { name: "existing", addresses: existing },
        Traffic { name: "uniform", addresses: uniform },
        Traffic { name: "zipf", addresses: zipf },
    ]
}

/// A rank by the law 1/rank, by the inverse of its (continuous) distribution.
fn zipf(random: u64, ranks: usize) -> usize {
    let share = random as f64 / 2f64.powi(64);
    ((ranks as f64 + 1.0).powf(share) as usize - 1).min(ranks - 1)
}

//! Counts how many claims hold: the papers' and ours separately, and each finding once.

use std::collections::BTreeSet;

use crate::report::{Author, Report, Verdict};

/// Verdicts of the papers' claims, and of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// What the papers say.
    pub papers: Counts,
    /// What the lab adds.
    pub ours: Counts,
}

/// How many claims got which verdict. Claims that show one finding together count once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Confirmed by closed form and simulation.
    pub hold: usize,
    /// Contradicted by closed form or simulation.
    pub fail: usize,
    /// Events too rare for the samples.
    pub too_rare: usize,
    /// The paper gives no numbers to compare with.
    pub unverifiable: usize,
}

impl Tally {
    /// Counts the claims of some reports.
    #[must_use]
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        let (mut tally, mut seen) = (Self::default(), BTreeSet::new());
        for claim in reports.into_iter().flat_map(Report::claims) {
            let counts = match claim.author() {
                Author::Paper => &mut tally.papers,
                Author::Ours => &mut tally.ours,
            };
            let is_first = claim.finding().is_empty()
                || seen.insert((
                    claim.finding(),
                    claim.author() == Author::Ours,
                    claim.verdict().name(),
                ));
            if !is_first {
                continue;
            }
            match claim.verdict() {
                Verdict::Holds => counts.hold += 1,
                Verdict::Fails => counts.fail += 1,
                Verdict::TooRare => counts.too_rare += 1,
                Verdict::Unverifiable => counts.unverifiable += 1,
            }
        }
        tally
    }
}

impl Counts {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.hold + self.fail + self.too_rare + self.unverifiable
    }
}

/// As in `41 hold, 7 do not, 2 are too rare to tell, 9 cannot be verified`.
impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { hold, fail, too_rare, unverifiable } = self;
        write!(f, "{hold} hold, {fail} do not")?;
        if *too_rare > 0 {
            write!(f, ", {too_rare} are too rare to tell")?;
        }
        if *unverifiable > 0 {
            write!(f, ", {unverifiable} cannot be verified")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Plot;
    use crate::report::{Claim, Findings, Table};

    #[test]
    fn one_finding_counts_once_and_ours_apart() {
        let failed = |claim: &str| Claim::paper("so", claim).finding("slip").judged(false);
        let claims = vec![
            failed("here"),
            failed("there"),
            Claim::paper("so", "where it holds").finding("slip").judged(true),
            Claim::paper("so", "alone").judged(true),
            Claim::ours("ours").judged(false),
            Claim::ours("rare").too_rare(),
        ];
        let findings = Findings { table: Table::new([]), claims, plot: Plot::default() };
        let tally = Tally::of([&Report::of_findings(findings)]);
        assert_eq!(tally.papers, Counts { hold: 2, fail: 1, ..Counts::default() });
        assert_eq!(tally.ours, Counts { fail: 1, too_rare: 1, ..Counts::default() });
        assert_eq!(tally.papers.to_string(), "2 hold, 1 do not");
        assert_eq!(tally.ours.to_string(), "0 hold, 1 do not, 1 are too rare to tell");
    }
}

//! One claim, of a paper or of ours, and its verdict.
//!
//! A paper's claim carries the paper's own words ([`Claim::paper`]); what the lab adds is marked as
//! ours ([`Claim::ours`]). A claim has at most three numbers, all in one unit: the stated number,
//! the result of the closed form, and the result of the simulation. The verdict follows from them
//! by a rule that is chosen when the claim is made ([`Draft::within`] and its siblings), never by
//! looking at the outcome.

use serde::Serialize;

/// Verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Formula and simulation confirm it.
    Holds,
    /// Formula or simulation contradict it.
    Fails,
    /// The events are too rare for the samples to show a difference.
    TooRare,
    /// The text does not give the numbers that would be needed for a comparison.
    Unverifiable,
}

impl Verdict {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::TooRare => "too rare",
            Self::Unverifiable => "unverifiable",
        }
    }
}

/// Who claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// A paper, in the words of the claim's quote.
    Paper,
    /// The lab: about umbel, or about what the papers leave open.
    Ours,
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    claim: String,
    author: Author,
    quote: &'static str,
    finding: &'static str,
    unit: &'static str,
    stated: Option<f64>,
    formula: Option<f64>,
    simulated: Option<f64>,
    tolerance: Option<f64>,
    seeds: u64,
    verdict: Verdict,
    note: String,
}

impl Claim {
    /// Starts a claim of a paper: the paper's own words, and the claim that is checked.
    pub(crate) fn paper(quote: &'static str, claim: impl Into<String>) -> Draft {
        Self::begin(Author::Paper, quote, claim.into())
    }

    /// Starts a claim that no paper makes.
    pub(crate) fn ours(claim: impl Into<String>) -> Draft {
        Self::begin(Author::Ours, "", claim.into())
    }

    fn begin(author: Author, quote: &'static str, claim: String) -> Draft {
        Draft(Self {
            claim,
            author,
            quote,
            finding: "",
            unit: "%",
            stated: None,
            formula: None,
            simulated: None,
            tolerance: None,
            seeds: 0,
            verdict: Verdict::Unverifiable,
            note: String::new(),
        })
    }

    /// The claim in words.
    #[must_use]
    pub fn claim(&self) -> &str {
        &self.claim
    }

    /// Who claims it.
    #[must_use]
    pub const fn author(&self) -> Author {
        self.author
    }

    /// The paper's own words; empty if the claim is ours.
    #[must_use]
    pub const fn quote(&self) -> &'static str {
        self.quote
    }

    /// The finding that several claims show together, each in another place. Empty if the claim is
    /// not part of one.
    #[must_use]
    pub const fn finding(&self) -> &'static str {
        self.finding
    }

    /// The unit of all its numbers.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        self.unit
    }

    /// What the text states.
    #[must_use]
    pub const fn stated(&self) -> Option<f64> {
        self.stated
    }

    /// What the closed form gives.
    #[must_use]
    pub const fn formula(&self) -> Option<f64> {
        self.formula
    }

    /// What the simulation found.
    #[must_use]
    pub const fn simulated(&self) -> Option<f64> {
        self.simulated
    }

    /// Maximum distance from the stated number that still counts as equal.
    #[must_use]
    pub const fn tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    /// Number of seeds behind the simulated number; 0 if there is none.
    #[must_use]
    pub const fn seeds(&self) -> u64 {
        self.seeds
    }

    /// Its verdict.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// What else a reader should know.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }
}

/// A claim without a verdict yet.
#[must_use = "a draft becomes a claim with its verdict"]
pub(crate) struct Draft(Claim);

impl Draft {
    pub(crate) fn stated(mut self, number: f64) -> Self {
        self.0.stated = Some(significant(number));
        self
    }

    pub(crate) fn formula(mut self, number: f64) -> Self {
        self.0.formula = Some(significant(number));
        self
    }

    pub(crate) fn simulated(mut self, number: f64, seeds: u64) -> Self {
        self.0.simulated = Some(significant(number));
        self.0.seeds = seeds;
        self
    }

    /// The unit of all numbers, percent unless it is given.
    pub(crate) fn unit(mut self, unit: &'static str) -> Self {
        self.0.unit = unit;
        self
    }

    /// The finding that this claim and others show together: counted once.
    pub(crate) fn finding(mut self, finding: &'static str) -> Self {
        self.0.finding = finding;
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.0.note = note.into();
        self
    }

    /// Holds if formula and simulation are both this close to what is stated.
    pub(crate) fn within(self, tolerance: f64) -> Claim {
        self.rounded_and_simulated(tolerance, 0.0)
    }

    /// Holds if the formula rounds to what is printed, and the simulation is as close, plus at most
    /// three standard errors.
    pub(crate) fn rounded_and_simulated(self, rounding: f64, standard_error: f64) -> Claim {
        let Claim { stated, formula, simulated, .. } = self.0;
        let tolerance = significant(rounding + 3.0 * standard_error);
        let near = |number: Option<f64>, tolerance: f64| match (number, stated) {
            (Some(number), Some(stated)) => (number - stated).abs() <= tolerance,
            _ => true,
        };
        self.tolerance(tolerance).judged(near(formula, rounding) && near(simulated, tolerance))
    }

    /// Holds if formula and simulation are both above what is stated.
    pub(crate) fn above(self) -> Claim {
        let Claim { stated, formula, simulated, .. } = self.0;
        let above = |number: Option<f64>| number.zip(stated).is_none_or(|(n, stated)| n > stated);
        self.judged(above(formula) && above(simulated))
    }

    /// States a tolerance for a verdict that is decided by another rule.
    pub(crate) fn tolerance(mut self, tolerance: f64) -> Self {
        self.0.tolerance = Some(significant(tolerance));
        self
    }

    /// Holds or fails by a rule of the caller, which the claim or its note names.
    pub(crate) fn judged(mut self, holds: bool) -> Claim {
        self.0.verdict = if holds { Verdict::Holds } else { Verdict::Fails };
        self.0
    }

    /// Sets the verdict for an event that is too rare for the samples to decide.
    pub(crate) fn too_rare(mut self) -> Claim {
        self.0.verdict = Verdict::TooRare;
        self.0
    }

    /// Sets the verdict for a claim whose paper gives no numbers to compare with.
    pub(crate) fn unverifiable(self) -> Claim {
        self.0
    }
}

/// Rounds to six significant digits, and rounding errors to zero: more digits would differ between
/// machines.
fn significant(number: f64) -> f64 {
    if number.abs() < 1e-12 {
        return 0.0;
    }
    format!("{number:.5e}").parse().map_or(number, |rounded: f64| rounded + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(stated: f64, formula: f64, simulated: f64) -> Draft {
        Claim::paper("it is so", "it").stated(stated).formula(formula).simulated(simulated, 20)
    }

    #[test]
    fn a_claim_holds_when_both_numbers_are_near_enough() {
        assert_eq!(draft(2.0, 2.1, 1.9).within(0.11).verdict(), Verdict::Holds);
        assert_eq!(draft(2.0, 2.2, 1.9).within(0.11).verdict(), Verdict::Fails);
        assert_eq!(draft(2.0, 2.1, 1.8).within(0.11).verdict(), Verdict::Fails);
    }

    #[test]
    fn only_the_simulation_is_granted_its_standard_errors() {
        let claim = draft(2.0, 2.0, 2.3).rounded_and_simulated(0.05, 0.1);
        assert_eq!((claim.verdict(), claim.tolerance()), (Verdict::Holds, Some(0.35)));
        let claim = draft(2.0, 2.3, 2.0).rounded_and_simulated(0.05, 0.1);
        assert_eq!(claim.verdict(), Verdict::Fails);
    }

    #[test]
    fn more_than_is_more_than() {
        assert_eq!(draft(50.0, 58.0, 57.0).above().verdict(), Verdict::Holds);
        assert_eq!(draft(50.0, 44.0, 57.0).above().verdict(), Verdict::Fails);
        assert_eq!(draft(50.0, 58.0, 50.0).above().verdict(), Verdict::Fails);
    }

    #[test]
    fn numbers_have_six_digits() {
        assert_eq!(draft(1.0, 2.0 / 3.0, 0.0).unverifiable().formula(), Some(0.666_667));
        assert_eq!(draft(1.0, 1.0, -1e-14).unverifiable().simulated(), Some(0.0));
        assert!(significant(-0.0).is_sign_positive());
    }
}

//! Decides whether closed forms and simulated rates are close: one rule for all experiments.
//!
//! A row is close if the mean of the seeds is within a stated share of the closed form, plus
//! three standard errors. The standard error is that of the seeds, or that of counting the
//! events that the form expects, if that is larger: a few seeds may agree by chance. A row with
//! fewer than [`MIN_EVENTS`] expected events shows nothing, since three standard errors are half of
//! the rate there; it is ignored, and a claim without any other row is too rare to tell.

use crate::plan::Sampling;
use crate::report::{Claim, Draft};
use crate::spread::Spread;

/// "Very closely matched": within a twentieth.
pub(super) const VERY_CLOSE: f64 = 0.05;
/// "Match well", "the difference is small": within a tenth.
pub(super) const CLOSE: f64 = 0.1;
/// Expected events below which a row is too rare to tell: three standard errors are half.
const MIN_EVENTS: f64 = 36.0;

/// Standard error of a rate in percent from counting alone.
fn counting_error(sampling: Sampling, percent: f64) -> f64 {
    let rate = (percent / 100.0).clamp(0.0, 1.0);
    100.0 * (rate * (1.0 - rate) / keys(sampling)).sqrt()
}

fn can_tell(sampling: Sampling, percent: f64) -> bool {
    percent / 100.0 * keys(sampling) >= MIN_EVENTS
}

fn keys(sampling: Sampling) -> f64 {
    sampling.seeds as f64 * sampling.asked as f64
}

/// Judges rows of closed form and simulated rate, both in percent.
pub(super) fn close(
    draft: Draft,
    tolerance: f64,
    rows: impl Iterator<Item = (f64, Spread)>,
    sampling: Sampling,
) -> Claim {
    let (measurable, rare): (Vec<_>, Vec<_>) =
        rows.partition(|(formula, _)| can_tell(sampling, *formula));
    let draft = draft.unit("% of rows").stated(100.0);
    if measurable.is_empty() {
        let note = format!("all {} rows are {RARE}", rare.len());
        return draft.note(note).too_rare();
    }
    let is_close = |(formula, found): &&(f64, Spread)| {
        let error = found.standard_error().max(counting_error(sampling, *formula));
        (formula - found.mean).abs() <= tolerance * formula + 3.0 * error
    };
    let apart = |(formula, found): &(f64, Spread)| 100.0 * (found.mean / formula - 1.0);
    let furthest = measurable.iter().max_by(|a, b| apart(a).abs().total_cmp(&apart(b).abs()));
    let furthest = furthest.map_or(String::new(), |row| {
        let (formula, found) = row;
        format!(
            "; furthest off {:+.1} %: {} simulated for {}",
            apart(row),
            digits(found.mean),
            digits(*formula)
        )
    });
    let left_out = match rare.len() {
        0 => String::new(),
        rows => format!("; {rows} more rows are {RARE}"),
    };
    let close = measurable.iter().filter(is_close).count();
    draft
        .simulated(100.0 * close as f64 / measurable.len() as f64, sampling.seeds)
        .note(format!(
            "{close} of {} rows are close: the mean of the seeds within {:.0} % of the closed form and three standard \
             errors{furthest}{left_out}",
            measurable.len(),
            100.0 * tolerance
        ))
        .within(0.0)
}

const RARE: &str = "too rare to tell: fewer than 36 events expected";

/// A rate in percent, with three significant digits.
fn digits(percent: f64) -> String {
    let decimals = (2.0 - percent.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    const SAMPLING: Sampling = Sampling { seeds: 4, asked: 10_000 };

    fn judged(rows: &[(f64, [f64; 4])]) -> Claim {
        let rows = rows.iter().map(|(formula, found)| (*formula, Spread::of(*found)));
        close(Claim::ours("it"), VERY_CLOSE, rows, SAMPLING)
    }

    #[test]
    fn a_row_is_close_within_the_tolerance_and_its_standard_errors() {
        assert_eq!(judged(&[(10.0, [10.4; 4])]).verdict(), Verdict::Holds);
        // A twentieth, and three times the error of counting 4,000 events of 40,000: 0.45.
        assert_eq!(judged(&[(10.0, [10.9; 4])]).verdict(), Verdict::Holds);
        assert_eq!(judged(&[(10.0, [11.0; 4])]).verdict(), Verdict::Fails);
        assert_eq!(judged(&[(10.0, [9.0; 4])]).verdict(), Verdict::Fails);
        // Seeds that scatter more are allowed a larger difference.
        assert_eq!(judged(&[(10.0, [11.0, 13.0, 9.0, 11.0])]).verdict(), Verdict::Holds);
    }

    #[test]
    fn rows_that_cannot_tell_are_left_out_and_said_so() {
        // 40,000 keys: 36 events are 0.09 %.
        let claim = judged(&[(10.0, [10.0; 4]), (0.08, [0.0; 4])]);
        assert_eq!((claim.verdict(), claim.simulated()), (Verdict::Holds, Some(100.0)));
        assert!(claim.note().contains("1 more rows are too rare"), "{}", claim.note());
        assert!(claim.note().starts_with("1 of 1 rows are close"), "{}", claim.note());
        assert_eq!(judged(&[(0.08, [0.0; 4])]).verdict(), Verdict::TooRare);
        assert_eq!(judged(&[(0.1, [0.0; 4])]).verdict(), Verdict::Fails);
    }
}

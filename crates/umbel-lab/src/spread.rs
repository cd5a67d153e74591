//! Statistics over several trials: mean, minimum, maximum and standard deviation.

/// Statistics of the numbers of several trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Standard deviation of one trial, from the sample; 0 for a single trial.
    pub(crate) deviation: f64,
    count: f64,
}

impl Spread {
    /// The spread of some numbers, of which there is at least one.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            low: values.iter().copied().fold(f64::INFINITY, f64::min),
            high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            deviation: if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
            count,
        }
    }

    /// The spread of what trials found in row `i` of a table.
    pub(crate) fn of_row<T>(trials: &[Vec<T>], i: usize, value: impl Fn(&T) -> f64) -> Self {
        Self::of(trials.iter().map(|rows| value(&rows[i])))
    }

    /// Standard error of the mean.
    pub(crate) fn standard_error(&self) -> f64 {
        self.deviation / self.count.sqrt()
    }

    /// Standard error of the difference to another mean. Not by `hypot`, which needs a newer glibc
    /// than the rest of the program.
    pub(crate) fn error_of_difference(&self, other: &Self) -> f64 {
        (self.standard_error().powi(2) + other.standard_error().powi(2)).sqrt()
    }

    /// Whether a number may be that of one more trial: within three standard deviations.
    pub(crate) fn may_be_a_trial(&self, value: f64) -> bool {
        (value - self.mean).abs() <= 3.0 * self.deviation
    }

    /// The same for numbers that are all smaller by this amount.
    pub(crate) fn less(self, by: f64) -> Self {
        Self { mean: self.mean - by, low: self.low - by, high: self.high - by, ..self }
    }

    /// The same in percent.
    pub(crate) fn percent(self) -> Self {
        Self {
            mean: 100.0 * self.mean,
            low: 100.0 * self.low,
            high: 100.0 * self.high,
            deviation: 100.0 * self.deviation,
            count: self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_deviation_and_range_are_those_of_the_numbers() {
        let spread = Spread::of([1.0, 2.0, 3.0, 6.0]);
        assert_eq!((spread.mean, spread.low, spread.high), (3.0, 1.0, 6.0));
        assert!((spread.deviation - (14.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((spread.standard_error() - spread.deviation / 2.0).abs() < 1e-15);
        assert!(spread.may_be_a_trial(9.4) && !spread.may_be_a_trial(9.6));
        assert_eq!(Spread::of([0.5]).deviation, 0.0);
        assert_eq!(Spread::of([0.25]).percent().mean, 25.0);
        assert_eq!(spread.less(1.0).low, 0.0);
    }
}

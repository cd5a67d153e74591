//! Maps values to coordinates: linear or logarithmic, with round numbers.

/// Values → coordinates.
pub(super) struct Scale {
    low: f64,
    high: f64,
    ends: (f64, f64),
    is_log: bool,
    step: f64,
}

impl Scale {
    pub(super) fn linear(
        values: impl Iterator<Item = f64>,
        ends: (f64, f64),
        from_zero: bool,
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if from_zero && low > 0.0 {
            low = 0.0;
        }
        if high <= low {
            high = low + 1.0;
        }
        let step = nice_step((high - low) / 5.0);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high, ends, is_log: false, step }
    }

    /// Positions 0, 1, … of names, with half a position at both ends.
    pub(super) fn places(count: usize, ends: (f64, f64)) -> Self {
        Self { low: -0.5, high: count as f64 - 0.5, ends, is_log: false, step: 1.0 }
    }

    pub(super) fn log(values: impl Iterator<Item = f64>, ends: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value.log10()), high.max(value.log10()));
        }
        if low > high {
            (low, high) = (-1.0, 0.0);
        }
        let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        Self { low, high, ends, is_log: true, step: 1.0 }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if self.is_log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        self.ends.0 + share * (self.ends.1 - self.ends.0)
    }

    /// Whether a value can be shown.
    pub(super) fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_log || value > 0.0)
    }

    /// The value, or the lowest value that can be shown.
    pub(super) fn min(&self, value: f64) -> f64 {
        if self.is_log { value.max(10_f64.powf(self.low)) } else { value }
    }

    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round() as i32;
        let decimals = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        let tick = |i: i32| {
            let value = self.low + f64::from(i) * self.step;
            if self.is_log {
                let decimals = (-value).max(0.0) as usize;
                (10_f64.powf(value), format!("{:.decimals$}", 10_f64.powf(value)))
            } else {
                (value, format!("{value:.decimals$}"))
            }
        };
        (0..=count).map(tick).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `min`.
fn nice_step(min: f64) -> f64 {
    let power = 10_f64.powf(min.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= min * 0.999);
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_numbers() {
        assert_eq!([0.9, 1.0, 1.7, 3.0, 7.0].map(nice_step), [1.0, 1.0, 2.0, 5.0, 10.0]);
        assert!((nice_step(0.03) - 0.05).abs() < 1e-12);
        let scale = Scale::linear([3.0, 47.0].into_iter(), (0.0, 100.0), true);
        assert_eq!((scale.low, scale.high, scale.at(25.0)), (0.0, 50.0, 50.0));
        let labels: Vec<String> = scale.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "10", "20", "30", "40", "50"]);
    }
}

//! Durations as people write them: `500ms`, `1s`, `10m`, `2h`, `7d`, or a number of seconds.
//!
//! Always true: what [`format_duration`] writes, [`parse_duration`] reads as the same duration.

use std::time::Duration;

/// The longest duration that is read, in seconds: adding it to a moment overflows nothing.
pub const MAX_SECONDS: f64 = 1e9;

/// Units and their seconds; longer names first, so that `ms` is not read as `s`.
const UNITS: [(&str, f64); 5] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];

/// Reads a number with the unit `ms`, `s`, `m`, `h` or `d`, or without one: seconds. `None` if it
/// is not of this form, negative, or above [`MAX_SECONDS`].
///
/// ```
/// use std::time::Duration;
/// use umbel::duration::parse_duration;
///
/// assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
/// assert_eq!(parse_duration("10m"), parse_duration("600"));
/// assert_eq!(parse_duration("soon"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let with_unit = |(unit, seconds): &(&str, f64)| Some((text.strip_suffix(unit)?, *seconds));
    let (number, unit) = UNITS.iter().find_map(with_unit).unwrap_or((text, 1.0));
    // Rust reads "inf" and "nan" as numbers too.
    let number = number.trim_end().parse::<f64>().ok()? * unit;
    (0.0..=MAX_SECONDS).contains(&number).then(|| Duration::from_secs_f64(number))
}

/// Writes a duration in seconds, or in milliseconds where that takes no fraction.
///
/// ```
/// use std::time::Duration;
/// use umbel::duration::format_duration;
///
/// assert_eq!(format_duration(Duration::from_millis(1500)), "1500ms");
/// assert_eq!(format_duration(Duration::from_secs(60)), "60s");
/// ```
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    match duration.subsec_nanos() {
        0 => format!("{}s", duration.as_secs()),
        nanos if nanos % 1_000_000 == 0 => format!("{}ms", duration.as_millis()),
        _ => format!("{}s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_come_back_as_they_were_written() {
        for text in ["0s", "1s", "500ms", "1500ms", "0.0005s", "1000000000s"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        for (text, seconds) in [("2", 2), ("1e3", 1000), (" 3 s ", 3), ("2h", 7200), ("1.5m", 90)] {
            assert_eq!(parse_duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse_duration("7d"), parse_duration("604800"));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "s", "-1s", "1w", "1 s s", "inf", "nan", "infs", "1e300", "1000000001", "20000d"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}

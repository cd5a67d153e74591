//! Parsers for numbers on the command line. Each one's error names its valid range, in one line.
//!
//! Whole numbers may be written `1000000`, `1_000_000`, `1e6` or `1M`, rates and shares `0.01` or
//! `1%`, durations `300`, `300s` or `5m`: see [`umbel::number`] and [`umbel::duration`].

use std::time::Duration;

use umbel::Rate;
use umbel::duration::parse_duration;
use umbel::number::{parse_bytes, parse_count, parse_share};

/// Length of a filter.
pub(crate) fn bits(text: &str) -> Result<u64, String> {
    whole(text, 1, 1 << 40, "2^40")
}

/// Positions per key.
pub(crate) fn hashes(text: &str) -> Result<u32, String> {
    whole(text, 1, 64, "64").map(|hashes| hashes as u32)
}

/// How many keys, records or updates there are: at least one.
pub(crate) fn items(text: &str) -> Result<u64, String> {
    whole(text, 1, 1 << 40, "2^40")
}

/// How many keys there are; zero is allowed.
pub(crate) fn items_or_none(text: &str) -> Result<u64, String> {
    whole(text, 0, 1 << 40, "2^40")
}

/// How many hosts, filters of an entry, or prefix lengths there are.
pub(crate) fn some(text: &str) -> Result<u64, String> {
    whole(text, 1, 1_000_000, "1000000")
}

/// Steps of a walk; zero is allowed.
pub(crate) fn some_or_none(text: &str) -> Result<u64, String> {
    whole(text, 0, 1_000_000, "1000000")
}

/// Keys of a chain, of a window or of a step.
pub(crate) fn length(text: &str) -> Result<u32, String> {
    whole(text, 1, 1 << 24, "2^24").map(|length| length as u32)
}

/// How often something is repeated.
pub(crate) fn copies(text: &str) -> Result<u32, String> {
    whole(text, 1, 100, "100").map(|copies| copies as u32)
}

/// Nodes of a network.
pub(crate) fn nodes(text: &str) -> Result<u64, String> {
    whole(text, 2, 1_000_000, "1000000")
}

/// Hops that something travels.
pub(crate) fn hops(text: &str) -> Result<u8, String> {
    whole(text, 1, 255, "255").map(|hops| hops as u8)
}

/// A false positive rate, `0.01` or `1%`: a [`Rate`] that is not too small for the precision of
/// `f64`.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let range = "a number from 1e-15 to below 1 is needed";
    let given = parse_share(text).filter(|rate| *rate >= 1e-15).ok_or(range)?;
    Rate::new(given).map_err(|_| range.to_owned())
}

/// A miss target.
pub(crate) fn miss(text: &str) -> Result<Rate, String> {
    let range = "a number above 0 and at most 0.5 is needed, such as 0.01 or 1%";
    let given = parse_share(text).filter(|miss| *miss <= 0.5).ok_or(range)?;
    Rate::new(given).map_err(|_| range.to_owned())
}

/// A duration, or `none`.
pub(crate) fn duration_or_none(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    let range = "'none' or a duration such as 500ms, 1s or 10m is needed";
    parse_duration(text).map(Some).ok_or_else(|| range.to_owned())
}

/// A duration in seconds, as hosts accept it: above zero.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let range = "a duration above 0 and at most 10^9 seconds is needed, such as 30, 500ms or 5m";
    let given = parse_duration(text).filter(|given| !given.is_zero());
    given.map(|given| given.as_secs_f64()).ok_or_else(|| range.to_owned())
}

/// How long to wait: a number of milliseconds, or a duration with a unit.
pub(crate) fn milliseconds(text: &str, max: u64) -> Result<u64, String> {
    let has_unit = text.ends_with(char::is_alphabetic);
    let with_unit = || Some(parse_duration(text).filter(|_| has_unit)?.as_millis() as u64);
    let given = text.parse().ok().or_else(with_unit).filter(|given| (1..=max).contains(given));
    given.ok_or_else(|| format!("1 to {max} milliseconds are needed, or a duration such as 2s"))
}

/// A size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "a number of bytes is needed, such as 512M or 8G".to_owned())
}

/// A share of all bits.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let range = "a number from 0 to 1 is needed, such as 0.1 or 10%";
    parse_share(text).filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| range.to_owned())
}

/// Cost of a wrong answer.
pub(crate) fn weight(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1e6, "a number from 0 to 1000000 is needed")
}

/// Lines of a file per second.
pub(crate) fn line_rate(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1e6, "a number from 0.001 to 1000000 is needed")
}

/// Events per second: zero, or a rate that is not unreasonably small or large.
pub(crate) fn per_second(text: &str) -> Result<f64, String> {
    let range = "0 or a number from 1e-9 to 1e12 is needed";
    match real(text) {
        Some(0.0) => Ok(0.0),
        _ => between(text, 1e-9, 1e12, range),
    }
}

/// A finite or infinite number, but no NaN.
pub(crate) fn real(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}

fn between(text: &str, min: f64, max: f64, range: &str) -> Result<f64, String> {
    real(text).filter(|number| (min..=max).contains(number)).ok_or_else(|| range.to_owned())
}

/// A whole number within a command's own range.
pub(crate) fn count_within(text: &str, min: u64, max: u64) -> Result<u64, String> {
    whole(text, min, max, &max.to_string())
}

fn whole(text: &str, min: u64, max: u64, shown: &str) -> Result<u64, String> {
    parse_count(text)
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("a whole number from {min} to {shown} is needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for text in ["1000000", "1_000_000", "1e6", "1E6", "1M"] {
            assert_eq!(items(text), Ok(1_000_000), "{text}");
        }
        for text in ["300", "300s", "5m"] {
            assert_eq!(seconds(text), Ok(300.0), "{text}");
        }
        assert_eq!((milliseconds("500", 2000), milliseconds("2s", 2000)), (Ok(500), Ok(2000)));
        assert!(milliseconds("3s", 2000).is_err() && milliseconds("0", 2000).is_err());
        assert!(milliseconds("1.5", 2000).is_err());
        assert_eq!(size("512M"), Ok(512 << 20));
        assert_eq!(share("10%"), Ok(0.1));
        for text in ["", "0", "-1", "nan", "soon", "2e9"] {
            assert!(seconds(text).unwrap_err().contains("5m"), "{text}");
        }
        for text in ["", "G", "1X", "-1"] {
            assert!(size(text).unwrap_err().contains("512M"), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_in_range_is_refused_with_the_range() {
        for text in ["", "abc", "-1", "0", "1.5", "1e-1", "nan", "inf", "1e400", "2e12", "0x10"] {
            let refused = bits(text).unwrap_err();
            assert_eq!(refused, "a whole number from 1 to 2^40 is needed", "{text}");
        }
        assert!(hashes("65").is_err());
        assert_eq!(items_or_none("0"), Ok(0));
        for text in ["0", "1", "-0.1", "nan", "inf", "x", "1e-16"] {
            assert!(rate(text).unwrap_err().contains("1e-15"), "{text}");
        }
        assert!(rate("1e-15").is_ok());
        assert_eq!(rate("1%"), rate("0.01"));
        assert!(rate("100%").is_err() && rate("%").is_err());
        for text in ["0", "0.51", "nan", "-1"] {
            assert!(miss(text).unwrap_err().contains("0.5"), "{text}");
        }
        assert!(share("1.01").is_err() && share("NaN").is_err() && share("1").is_ok());
        assert!(per_second("0").is_ok() && per_second("1e-10").is_err());
        assert!(per_second("-1").is_err() && per_second("inf").is_err() && weight("1e7").is_err());
    }
}

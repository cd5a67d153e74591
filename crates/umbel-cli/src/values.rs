//! Numbers on the command line: each parser names its range, so that a mistake is one line.
//!
//! Whole numbers may be written `1000000`, `1_000_000` or `1e6`.

use std::time::Duration;

use umbel::Rate;
use umbel::duration::parse_duration;

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

/// How many keys there are, perhaps none.
pub(crate) fn items_or_none(text: &str) -> Result<u64, String> {
    whole(text, 0, 1 << 40, "2^40")
}

/// How many hosts, filters of an entry, or prefix lengths there are.
pub(crate) fn some(text: &str) -> Result<u64, String> {
    whole(text, 1, 1_000_000, "1000000")
}

/// Steps of a walk, perhaps none.
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

/// A false positive rate, `0.01` or `1%`: [`Rate`], and not so small that doubles lose it.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let range = "a number from 1e-15 to below 1 is needed";
    let given = real_or_percent(text).filter(|rate| *rate >= 1e-15).ok_or(range)?;
    Rate::new(given).map_err(|_| range.to_owned())
}

/// A miss target.
pub(crate) fn miss(text: &str) -> Result<Rate, String> {
    let range = "a number above 0 and at most 0.5 is needed, such as 0.01 or 1%";
    let given = real_or_percent(text).filter(|miss| *miss <= 0.5).ok_or(range)?;
    Rate::new(given).map_err(|_| range.to_owned())
}

/// A duration, or none.
pub(crate) fn duration_or_none(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    let range = "'none' or a duration such as 500ms, 1s or 10m is needed";
    parse_duration(text).map(Some).ok_or_else(|| range.to_owned())
}

/// A share of all bits.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1.0, "a number from 0 to 1 is needed")
}

/// What a wrong answer costs.
pub(crate) fn weight(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1e6, "a number from 0 to 1000000 is needed")
}

/// Events per second; not so few that nothing happens within the age of the universe.
/// Lines of a file per second.
pub(crate) fn line_rate(text: &str) -> Result<f64, String> {
    between(text, 0.001, 1e6, "a number from 0.001 to 1000000 is needed")
}

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

fn real_or_percent(text: &str) -> Option<f64> {
    match text.strip_suffix('%') {
        Some(percent) => real(percent.trim_end()).map(|percent| percent / 100.0),
        None => real(text),
    }
}

fn between(text: &str, least: f64, most: f64, range: &str) -> Result<f64, String> {
    real(text).filter(|number| (least..=most).contains(number)).ok_or_else(|| range.to_owned())
}

fn whole(text: &str, least: u64, most: u64, shown: &str) -> Result<u64, String> {
    parse_whole(text)
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("a whole number from {least} to {shown} is needed"))
}

fn parse_whole(text: &str) -> Option<u64> {
    let plain = text.replace('_', "");
    if let Ok(number) = plain.parse() {
        return Some(number);
    }
    let number: f64 = plain.parse().ok()?;
    let exact = (0.0..=9e15).contains(&number) && number.fract() == 0.0;
    (exact && plain.contains(['e', 'E'])).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_be_written_in_three_ways() {
        for text in ["1000000", "1_000_000", "1e6", "1E6"] {
            assert_eq!(items(text), Ok(1_000_000), "{text}");
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

//! Numbers as people write them: `1000000`, `1_000_000`, `1e6` or `1M`; `64MiB`; `1%`.
//!
//! The command line and configuration files read numbers through these functions, so that a
//! number means the same wherever it is written.

/// Units of counts, powers of ten. `m` is missing on purpose: it is the unit of minutes.
const COUNTS: [(&str, u32); 5] = [("k", 3), ("K", 3), ("M", 6), ("G", 9), ("T", 12)];

/// The largest number below which every whole number is a double.
const EXACT: f64 = 9e15;

/// Reads a whole number: `1000000`, `1_000_000`, `1e6`, `1M` or `1.5M`. The units `k`, `M`, `G`
/// and `T` are powers of ten. `None` if it is not of this form, not whole, negative, or above 2^64.
///
/// ```
/// use umbel::number::parse_count;
///
/// assert_eq!(parse_count("1M"), Some(1_000_000));
/// assert_eq!(parse_count("1.5k"), parse_count("1_500"));
/// assert_eq!(parse_count("1.5"), None);
/// ```
#[must_use]
pub fn parse_count(text: &str) -> Option<u64> {
    let plain = text.replace('_', "");
    let with_unit = |(unit, power): &(&str, u32)| Some((plain.strip_suffix(unit)?, *power));
    let (number, power) = COUNTS.iter().find_map(with_unit).unwrap_or((&plain, 0));
    // Not multiplied: 2.3 times 10^6 is not 2.3M exactly.
    times(number, 10, power, || match power {
        0 => number.parse().ok(),
        _ => format!("{number}e{power}").parse().ok(),
    })
}

/// Reads a number of bytes: `1048576`, `1024K`, `1M`, `1MiB` or `1.5G`. Units are powers of 1024.
/// `None` if it is not of this form, not whole, negative, or above 2^64.
///
/// ```
/// use umbel::number::parse_bytes;
///
/// assert_eq!(parse_bytes("64MiB"), Some(64 << 20));
/// assert_eq!(parse_bytes("64M"), parse_bytes("65536k"));
/// ```
#[must_use]
pub fn parse_bytes(text: &str) -> Option<u64> {
    let plain = text.replace('_', "");
    let is_digit = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
    let (number, unit) = plain.split_at(plain.find(|c| !is_digit(c)).unwrap_or(plain.len()));
    let power = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    // Exact: a power of two changes nothing but the exponent of a double.
    times(number, 1024, power, || Some(number.parse::<f64>().ok()? * 1024_f64.powi(power as i32)))
}

/// Reads a share or a rate: `0.01` or `1%`. `None` if it is neither a number nor a percentage.
///
/// ```
/// use umbel::number::parse_share;
///
/// assert_eq!(parse_share("1%"), parse_share("0.01"));
/// assert_eq!(parse_share("nan"), None);
/// ```
#[must_use]
pub fn parse_share(text: &str) -> Option<f64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    Some(share).filter(|share| share.is_finite())
}

/// A whole number times a power, exactly; what has a fraction or an exponent goes through `real`.
fn times(number: &str, base: u64, power: u32, real: impl FnOnce() -> Option<f64>) -> Option<u64> {
    if number.chars().all(|c| c.is_ascii_digit()) {
        return number.parse::<u64>().ok()?.checked_mul(base.pow(power));
    }
    let product = real().filter(|product| (0.0..=EXACT).contains(product))?;
    (product.fract() == 0.0).then_some(product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for text in ["1000000", "1_000_000", "1e6", "1E6", "1M", "1000k", "0.001G", "1.0e6"] {
            assert_eq!(parse_count(text), Some(1_000_000), "{text}");
        }
        // Not 2299999.9999999995.
        assert_eq!(parse_count("2.3M"), Some(2_300_000));
        assert_eq!(parse_count("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_count("0"), Some(0));
    }

    #[test]
    fn what_is_no_whole_number_is_no_count() {
        for text in [
            "",
            "k",
            "_",
            "abc",
            "-1",
            "-1k",
            "1.5",
            "1e-1",
            "nan",
            "inf",
            "1e400",
            "0x10",
            "1m",
            "1e3k",
            "1 000",
            "18446744073709551616",
            "1MB",
            "99999999999T",
            "+",
            "1%",
        ] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_have_units_of_1024() {
        for (text, bytes) in [
            ("7", 7),
            ("7B", 7),
            ("2KiB", 2048),
            ("2k", 2048),
            ("3G", 3 << 30),
            ("1.5G", 3 << 29),
            ("1e3", 1000),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "G", "1X", "99999999999999G", "-1", "1.0001", "1ee3", "nan", "1iB", "-1M"]
        {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn shares_may_be_percentages() {
        for (text, share) in [("0.01", 0.01), ("1%", 0.01), ("50 %", 0.5), ("1e-3", 0.001)] {
            assert_eq!(parse_share(text), Some(share), "{text}");
        }
        for text in ["", "%", "nan", "inf", "nan%", "one", "1%%"] {
            assert_eq!(parse_share(text), None, "{text}");
        }
    }
}

//! Numbers that only filters take, as people type them; the others are in `values`.

/// A seed: decimal, or hexadecimal after `0x`.
pub(in crate::cmd) fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "not a number of 64 bits such as 42 or 0x2a".to_owned())
}

/// A size in bytes: `1048576`, `1024K`, `1M` or `1MiB`; units are powers of 1024.
pub(in crate::cmd) fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let shift = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("not a size such as 512M or 8G".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "not a size such as 512M or 8G")?;
    number.checked_mul(1 << shift).ok_or_else(|| "more than 2^64 bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_type_them() {
        assert_eq!(seed("0x2A"), Ok(42));
        assert_eq!(seed("42"), Ok(42));
        assert_eq!(size("7"), Ok(7));
        assert_eq!(size("2KiB"), Ok(2048));
        assert_eq!(size("3G"), Ok(3 << 30));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        for bad in ["", "0x", "-1", "0x10000000000000000"] {
            assert!(seed(bad).is_err(), "{bad}");
        }
        for bad in ["", "G", "1.5G", "1X", "99999999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}

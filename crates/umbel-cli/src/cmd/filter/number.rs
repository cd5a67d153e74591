//! Parsers for numbers that only filters need; the others are in `values`.

/// A seed: decimal, or hexadecimal after `0x`.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "not a number of 64 bits such as 42 or 0x2a".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_type_them() {
        assert_eq!(seed("0x2A"), Ok(42));
        assert_eq!(seed("42"), Ok(42));
    }

    #[test]
    fn numbers_that_mean_nothing_are_refused() {
        for bad in ["", "0x", "-1", "0x10000000000000000"] {
            assert!(seed(bad).is_err(), "{bad}");
        }
    }
}

//! Parses the options of a command: numbers, each within a range. Anything else is an error that
//! names the accepted options, before anything is built.

use std::ops::RangeInclusive;

/// An option: its name, its default, and its valid range.
pub(crate) type Option = (&'static str, u64, RangeInclusive<u64>);

/// The numbers of these options, from the command line.
pub(crate) fn numbers<const N: usize>(options: &[Option; N]) -> Result<[u64; N], String> {
    read(options, std::env::args().skip(2))
}

/// The number of the one option of a command, from the command line.
pub(crate) fn number(option: Option) -> Result<u64, String> {
    numbers(&[option]).map(|[number]| number)
}

/// For commands that take no options.
pub(crate) fn none() -> Result<(), String> {
    numbers(&[]).map(|[]| ())
}

fn read<const N: usize>(
    options: &[Option; N],
    mut arguments: impl Iterator<Item = String>,
) -> Result<[u64; N], String> {
    let mut numbers = options.each_ref().map(|(_, default, _)| *default);
    let mut given = [false; N];
    while let Some(name) = arguments.next() {
        let Some(place) = options.iter().position(|(option, ..)| *option == name) else {
            let all = options.each_ref().map(|(option, ..)| format!("{option} N")).join(" and ");
            let all = if all.is_empty() { "no options" } else { &all };
            return Err(format!("this command takes {all}, not '{name}'"));
        };
        if std::mem::replace(&mut given[place], true) {
            return Err(format!("{name} is given twice"));
        }
        let (range, value) = (&options[place].2, arguments.next().unwrap_or_default());
        let number = value.parse().ok().filter(|number| range.contains(number));
        numbers[place] = number.ok_or_else(|| {
            format!(
                "{name} takes a number from {} to {}, not '{value}'",
                range.start(),
                range.end()
            )
        })?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_read(line: &str) -> Result<[u64; 2], String> {
        let words = line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
        read(&[("--minutes", 5, 1..=60), ("--seed", 7, 0..=u64::MAX)], words)
    }

    #[test]
    fn options_are_read_in_any_order_and_have_defaults() {
        assert_eq!(try_read(""), Ok([5, 7]));
        assert_eq!(try_read("--seed 0 --minutes 60"), Ok([60, 0]));
    }

    #[test]
    fn whatever_else_is_given_is_an_error_that_names_what_is_taken() {
        let range = "--minutes takes a number from 1 to 60, not ";
        for value in ["0", "61", "-1", "1.5", "x", "", "99999999999999999999"] {
            let error = try_read(&format!("--minutes {value}")).unwrap_err();
            assert_eq!(error, format!("{range}'{value}'"));
        }
        let error = try_read("--hours 1").unwrap_err();
        assert_eq!(error, "this command takes --minutes N and --seed N, not '--hours'");
        assert_eq!(try_read("--seed 1 --seed 2").unwrap_err(), "--seed is given twice");
        let error = read(&[], ["all".to_owned()].into_iter()).unwrap_err();
        assert_eq!(error, "this command takes no options, not 'all'");
    }
}

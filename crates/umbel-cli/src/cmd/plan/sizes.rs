//! Distributions of the number of keys per set, as given on the command line.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use umbel::design::{Distribution, PlanError};

use crate::values;

/// Help text for commands that accept a distribution.
pub(super) const DISTRIBUTIONS: &str = "\
Distributions of the number of keys, from 1 to N:
  uniform              every size is as likely
  normal:MEAN,SD       bell curve, standard deviation SD, cut off at 1 and N
  zipf-min:A           size i with a chance in proportion to i^-A
  zipf-max:A           the same from the largest size down
  zipf-random:A,SEED   as zipf-min:A, with the sizes in random order
  file:PATH            sizes that were observed, one a line, each with a weight after it or not";

/// A distribution as given on the command line.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sizes {
    Uniform,
    Normal { mean: f64, deviation: f64 },
    ZipfMin(f64),
    ZipfMax(f64),
    ZipfRandom { exponent: f64, seed: u64 },
    File(PathBuf),
}

impl Sizes {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (kind, values) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<Option<f64>> = values.split(',').map(values::real).collect();
        match (kind, numbers.as_slice()) {
            ("uniform", _) if text == "uniform" => Ok(Self::Uniform),
            ("normal", &[Some(mean), Some(deviation)]) => Ok(Self::Normal { mean, deviation }),
            ("zipf-min", &[Some(exponent)]) => Ok(Self::ZipfMin(exponent)),
            ("zipf-max", &[Some(exponent)]) => Ok(Self::ZipfMax(exponent)),
            ("zipf-random", &[Some(exponent), _]) => {
                let seed = values.split_once(',').and_then(|(_, seed)| seed.parse().ok());
                seed.map(|seed| Self::ZipfRandom { exponent, seed }).ok_or_else(allowed)
            }
            ("file", _) if !values.is_empty() => Ok(Self::File(values.into())),
            _ => Err(allowed()),
        }
    }

    pub(super) fn over(&self, max_items: u64) -> anyhow::Result<Distribution> {
        let distribution: Result<Distribution, PlanError> = match self {
            Self::Uniform => Ok(Distribution::uniform(max_items)),
            Self::Normal { mean, deviation } => Distribution::normal(max_items, *mean, *deviation),
            Self::ZipfMin(exponent) => Distribution::zipf_min(max_items, *exponent),
            Self::ZipfMax(exponent) => Distribution::zipf_max(max_items, *exponent),
            Self::ZipfRandom { exponent, seed } => {
                Distribution::zipf_random(max_items, *exponent, *seed)
            }
            Self::File(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let seen = observed(&text).with_context(|| path.display().to_string())?;
                return Distribution::observed(max_items, seen)
                    .with_context(|| format!("{} (--max-items is {max_items})", path.display()));
            }
        };
        Ok(distribution?)
    }
}

fn allowed() -> String {
    "uniform, normal:MEAN,SD, zipf-min:A, zipf-max:A, zipf-random:A,SEED or file:PATH is needed"
        .to_owned()
}

/// Parses lines `SIZE` or `SIZE WEIGHT`; empty lines and those that start with # are ignored.
fn observed(text: &str) -> anyhow::Result<Vec<(u64, f64)>> {
    let mut seen = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let weight = match *words.as_slice() {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [_] => Some(1.0),
            [_, weight] => values::real(weight),
            _ => None,
        };
        match (words[0].parse(), weight) {
            (Ok(size), Some(weight)) => seen.push((size, weight)),
            _ => bail!("line {number} is not a size, with a weight after it or not"),
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_as_written() {
        assert_eq!(Sizes::parse("uniform"), Ok(Sizes::Uniform));
        let normal = Sizes::Normal { mean: 665.0, deviation: 20.0 };
        assert_eq!(Sizes::parse("normal:665,20"), Ok(normal));
        let random = Sizes::ZipfRandom { exponent: 0.4, seed: u64::MAX };
        assert_eq!(Sizes::parse(&format!("zipf-random:0.4,{}", u64::MAX)), Ok(random));
        assert_eq!(Sizes::parse("file:a,b"), Ok(Sizes::File("a,b".into())));
        for bad in [
            "",
            "Uniform",
            "uniform:",
            "uniform:1",
            "normal:1",
            "normal:1,2,3",
            "normal:nan,1",
            "zipf-min:",
            "zipf-min:x",
            "zipf-max",
            "zipf-random:0.4",
            "zipf-random:0.4,-1",
            "zipf-random:0.4,1.5",
            "file:",
            "poisson:3",
        ] {
            assert_eq!(Sizes::parse(bad), Err(allowed()), "{bad}");
        }
    }

    #[test]
    fn observed_sizes_may_have_weights_and_comments() {
        let seen = observed("# sizes\n10\n\n 20 2.5 \n").unwrap();
        assert_eq!(seen, [(10, 1.0), (20, 2.5)]);
        for bad in ["x", "10 y", "10 1 1", "-3", "1.5", "10 nan"] {
            assert!(observed(bad).is_err(), "{bad}");
        }
    }
}

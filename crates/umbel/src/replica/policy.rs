//! The policy that decides when an update is due, and its text form.
//!
//! ```text
//! kind:value[,name=value…]       miss:0.01,ghost=0.05,longest=1s   (default)
//!                                overall:0.1,weights=1/5   the papers' weighted rate
//!                                dirty:0.1                 share of dirty bits (Summary Cache)
//!                                interval:60s              one update per minute
//!                                budget:10000              bytes per second
//!                                manual
//! each with shortest=, longest= and clears=: durations such as 500ms, 1s, 10m
//! ```
//!
//! Additions and removals have separate limits: `longest` says how long an added key may be unknown
//! to other hosts, `clears` how long a removed key may still be claimed. Callers notice the first,
//! and the length of an update for it grows with the keys added. The second takes a pass over all
//! bits.
//!
//! Not here: whether an update is due right now. The publisher decides that, from its counts.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::{format_duration, parse_duration};
use crate::model::stale::Weights;

/// When a home's replicas are too stale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// What is limited, and to which value.
    pub rule: Rule,
    /// The shortest time between two updates; `None` uses the host's default.
    pub shortest: Option<Duration>,
    /// The longest time that an added key may be denied by replicas; `None` uses the host's
    /// default.
    pub longest: Option<Duration>,
    /// The longest time that a removal may wait; `None` uses the host's default.
    pub clears: Option<Duration>,
}

/// What a policy limits, and to which value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Rule {
    /// Members that the replicas deny, and removed keys that they claim, both as shares of
    /// all members.
    Miss {
        /// Largest share of members that replicas may deny.
        miss: f64,
        /// Largest number of removed keys still claimed, per member.
        ghost: f64,
    },
    /// The papers' overall rate, equation 17: `w+ f+ + w- f-`.
    Overall {
        /// Largest overall rate.
        target: f64,
        /// The weights of false positives and false negatives.
        weights: Weights,
    },
    /// Share of dirty bits, as in Summary Cache.
    Dirty {
        /// Largest share of all bits.
        share: f64,
    },
    /// A fixed interval.
    Interval {
        /// Time between two updates.
        every: Duration,
    },
    /// Spend this many bytes per second, and keep the best rate that they allow.
    Budget {
        /// Bytes per second, on average over a long time.
        bytes_per_second: f64,
    },
    /// Only on request.
    Manual,
}

impl Policy {
    /// A policy with this rule and the host's intervals.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule, shortest: None, longest: None, clears: None }
    }
}

impl Default for Policy {
    fn default() -> Self {
        let rule = Rule::Miss { miss: 0.01, ghost: DEFAULT_GHOST };
        Self { longest: Some(DEFAULT_LONGEST), ..Self::new(rule) }
    }
}

/// The longest time that an added key waits under the default policy.
const DEFAULT_LONGEST: Duration = Duration::from_secs(1);

/// Removed keys that replicas may still claim, per member, unless the policy sets another value.
pub(crate) const DEFAULT_GHOST: f64 = 0.05;

/// Why a text is not a policy. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The word before the colon is none of the kinds.
    #[error("unknown policy '{0}': use miss, overall, dirty, interval, budget or manual")]
    Kind(String),
    /// A kind that needs a value has none, or a kind that takes none has one.
    #[error("policy {0}")]
    Value(&'static str),
    /// A name that this kind of policy does not have.
    #[error("policy '{kind}' has no '{name}'")]
    Name {
        /// The policy's kind.
        kind: String,
        /// What it was given.
        name: String,
    },
    /// A value outside its range.
    #[error("'{name}' takes {range}, not '{given}'")]
    Range {
        /// Which value.
        name: String,
        /// What it may be.
        range: &'static str,
        /// What it was.
        given: String,
    },
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let mut parts = text.split(',');
        let head = parts.next().unwrap_or_default();
        let (kind, value) = match head.split_once(':') {
            Some((kind, value)) => (kind.trim(), Some(value.trim())),
            None => (head.trim(), None),
        };
        let mut policy = Self::new(rule(kind, value)?);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            policy.set(kind, name.trim(), value.trim())?;
        }
        let longest = [policy.longest, policy.clears].into_iter().flatten().min();
        if policy.shortest.zip(longest).is_some_and(|(short, long)| short > long) {
            return Err(PolicyError::Value("has a shortest interval above its longest or clears"));
        }
        Ok(policy)
    }
}

impl Policy {
    /// Takes one `name=value`.
    fn set(&mut self, kind: &str, name: &str, value: &str) -> Result<(), PolicyError> {
        match (name, &mut self.rule) {
            ("shortest", _) => self.shortest = Some(duration(name, value)?),
            ("longest", _) => self.longest = Some(duration(name, value)?),
            ("clears", _) => self.clears = Some(duration(name, value)?),
            ("ghost", Rule::Miss { ghost, .. }) => *ghost = share(name, value)?,
            ("weights", Rule::Overall { weights, .. }) => *weights = parse_weights(value)?,
            _ => return Err(PolicyError::Name { kind: kind.into(), name: name.into() }),
        }
        Ok(())
    }
}

fn rule(kind: &str, value: Option<&str>) -> Result<Rule, PolicyError> {
    let needed = || value.ok_or(PolicyError::Value("needs a value, as in miss:0.01"));
    Ok(match kind {
        "miss" => Rule::Miss { miss: share(kind, needed()?)?, ghost: DEFAULT_GHOST },
        "overall" => Rule::Overall { target: share(kind, needed()?)?, weights: Weights::default() },
        "dirty" => Rule::Dirty { share: share(kind, needed()?)? },
        "interval" => Rule::Interval { every: duration(kind, needed()?)? },
        "budget" => Rule::Budget { bytes_per_second: positive(kind, needed()?)? },
        "manual" if value.is_none() => Rule::Manual,
        "manual" => return Err(PolicyError::Value("manual takes no value")),
        other => return Err(PolicyError::Kind(other.into())),
    })
}

fn number(
    name: &str,
    given: &str,
    range: &'static str,
    fits: impl Fn(f64) -> bool,
) -> Result<f64, PolicyError> {
    let parsed = given.parse().ok().filter(|number: &f64| number.is_finite() && fits(*number));
    parsed.ok_or_else(|| PolicyError::Range { name: name.into(), range, given: given.into() })
}

fn share(name: &str, given: &str) -> Result<f64, PolicyError> {
    number(name, given, "a number from 0 to 1", |number| (0.0..=1.0).contains(&number))
}

fn positive(name: &str, given: &str) -> Result<f64, PolicyError> {
    number(name, given, "a number above 0", |number| number > 0.0)
}

fn duration(name: &str, given: &str) -> Result<Duration, PolicyError> {
    let range = "a duration such as 500ms, 1s or 10m, up to 10^9 seconds";
    let error = || PolicyError::Range { name: name.into(), range, given: given.into() };
    parse_duration(given).ok_or_else(error)
}

fn parse_weights(given: &str) -> Result<Weights, PolicyError> {
    let range = "two weights, as in 1/5";
    let (left, right) = given.split_once('/').unwrap_or((given, ""));
    let weight = |text| number("weights", text, range, |number| number >= 0.0);
    Ok(Weights { false_positive: weight(left)?, disagreement: weight(right)? })
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Rule::Miss { miss, ghost } => write!(f, "miss:{miss},ghost={ghost}")?,
            Rule::Overall { target, weights } => {
                let Weights { false_positive, disagreement } = weights;
                write!(f, "overall:{target},weights={false_positive}/{disagreement}")?;
            }
            Rule::Dirty { share } => write!(f, "dirty:{share}")?,
            Rule::Interval { every } => write!(f, "interval:{}", format_duration(every))?,
            Rule::Budget { bytes_per_second } => write!(f, "budget:{bytes_per_second}")?,
            Rule::Manual => f.write_str("manual")?,
        }
        let intervals =
            [("shortest", self.shortest), ("longest", self.longest), ("clears", self.clears)];
        for (name, interval) in intervals {
            if let Some(interval) = interval {
                write!(f, ",{name}={}", format_duration(interval))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_come_back_as_they_were_written() {
        for text in [
            "miss:0.01,ghost=0.05,longest=1s",
            "miss:0.01,ghost=0.05,longest=1s,clears=60s",
            "overall:0.1,weights=1/5",
            "dirty:0.1,shortest=1s,longest=60s",
            "interval:60s",
            "budget:10000,longest=600s",
            "manual",
            "miss:0,ghost=1,shortest=500ms",
        ] {
            let policy: Policy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        assert_eq!(Policy::default().to_string(), "miss:0.01,ghost=0.05,longest=1s");
        assert_eq!("miss:0.01".parse::<Policy>().unwrap().longest, None, "the host's");
        assert_eq!("interval:1.5m".parse::<Policy>().unwrap().to_string(), "interval:90s");
        assert_eq!("manual,longest=60".parse::<Policy>(), "manual,longest=1m".parse());
        assert_eq!("overall:0.1".parse::<Policy>().unwrap().to_string(), "overall:0.1,weights=1/1");
    }

    #[test]
    fn nonsense_is_refused_with_what_is_allowed() {
        for (text, message) in [
            ("", "unknown policy ''"),
            ("often", "unknown policy 'often'"),
            ("miss", "needs a value"),
            ("miss:x", "a number from 0 to 1, not 'x'"),
            ("miss:NaN", "not 'NaN'"),
            ("miss:1.5", "not '1.5'"),
            ("miss:0.1,weights=1/2", "policy 'miss' has no 'weights'"),
            ("overall:0.1,weights=1", "two weights"),
            ("overall:0.1,weights=-1/2", "two weights"),
            ("interval:-1", "a duration such as 500ms, 1s or 10m"),
            ("interval:1e300", "up to 10^9 seconds, not '1e300'"),
            ("miss:0.01,longest=1 week", "not '1 week'"),
            ("miss:0.01,clears=", "'clears' takes a duration"),
            ("miss:0.01,shortest=2m,clears=1m", "above its longest or clears"),
            ("budget:0", "a number above 0"),
            ("manual:1", "takes no value"),
            ("dirty:0.1,shortest=5,longest=1", "above its longest"),
            ("dirty:0.1,,", "policy 'dirty' has no ''"),
        ] {
            let error = text.parse::<Policy>().unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}

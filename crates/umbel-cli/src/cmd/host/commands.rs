//! Requests to a host: `umbel publish`, `umbel policy` and `umbel reserve` concern a set, `umbel leave`
//! the next stop of the host.

use std::process::ExitCode;

use clap::Args;
use umbel::Rate;
use umbel::replica::Policy;
use umbel_node::{ChainQuery, Confirm};

use super::everyone::{HostResult, everyone};
use super::{Options, lifetime, set_name};
use crate::client::{text, wrong_answer};
use crate::output::print;
use crate::values;

/// Publish all changes of a set now, removals included
#[derive(Args)]
#[command(after_help = "Examples:\n  umbel publish images")]
pub(crate) struct Publish {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    options: Options,
}

impl Publish {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        execute(&self.options, false, &["UMBEL.PUBLISH", &self.set])
    }
}

/// Ask other hosts to keep naming a host that is about to restart
#[derive(Args)]
#[command(after_help = "\
Run it before a stop. The host publishes what others do not know yet and asks them to keep naming
it for this long after it stops, at most for their own timing.absence. The host keeps serving until
it is stopped. The request holds for one stop and overrides leave_on_stop; 0 withdraws it. Hosts
that keep their keys in memory refuse it: their keys are gone after a restart.

Examples:
  umbel leave --back-within 60s && systemctl restart umbel
  umbel leave --back-within 0 --at cache-2:7440")]
pub(crate) struct Leave {
    /// How long others keep naming the host after it stops, such as 60s or 2m
    #[arg(long, value_name = "TIME", value_parser = absence)]
    back_within: String,
    #[command(flatten)]
    options: Options,
}

/// A duration on the command line, as hosts accept it.
fn absence(text: &str) -> Result<String, String> {
    let range = "a duration such as 60s or 2m is needed, at most 10^9 seconds";
    let time = umbel::duration::parse_duration(text).ok_or_else(|| range.to_owned())?;
    Ok(umbel::duration::format_duration(time))
}

impl Leave {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        execute(&self.options, false, &["UMBEL.LEAVE", &self.back_within])
    }
}

/// Show or change when the replicas of a set are updated
#[derive(Args)]
#[command(
    name = "policy",
    after_help = "\
Policies: miss:0.01,ghost=0.05   overall:0.1,weights=1/5   dirty:0.1   interval:60s
          budget:10000           manual
each with shortest= (between two updates), longest= (until an added key is published)
and clears= (until a removal is published): durations such as 500ms, 1s or 10m.
Hosts start with miss:0.01,ghost=0.05,longest=1s.

Examples:
  umbel policy images
  umbel policy images miss:0.02,longest=5s --all-hosts"
)]
pub(crate) struct PolicyCommand {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    /// New policy; without one, the present one is shown
    policy: Option<Policy>,
    /// Apply this at every host of the cluster
    #[arg(long, requires = "policy")]
    all_hosts: bool,
    #[command(flatten)]
    options: Options,
}

impl PolicyCommand {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self.policy {
            Some(policy) => {
                let words = ["UMBEL.POLICY", &self.set, &policy.to_string()];
                execute(&self.options, self.all_hosts, &words)
            }
            None => self.show(),
        }
    }

    fn show(&self) -> anyhow::Result<ExitCode> {
        let mut client = self.options.at.connect()?;
        let answer = client.ask(&[b"UMBEL.POLICY", self.set.as_bytes()])?;
        let policy = text(&answer).and_then(|text| str::from_utf8(text).ok());
        let policy = policy.ok_or_else(|| wrong_answer(client.address(), &answer))?;
        print(&match self.options.json {
            true => format!("{}\n", serde_json::json!({ "set": self.set, "policy": policy })),
            false => format!("{}\n", umbel::text::for_terminal(policy)),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Create a set with its own rate and capacity, or rebuild it with these
#[derive(Args)]
#[command(after_help = "\
The rate is the chance that one lookup of an absent key names any wrong host, with as many
hosts as --hosts says. umbel plan replica computes what a set will cost.

Examples:
  umbel reserve images --false-positive 0.001 --capacity 1e6
  umbel reserve images --false-positive 1% --capacity 1e6 --hosts 40 --all-hosts
  umbel reserve sessions --false-positive 0.01 --capacity 1e5 --lifetime 3600
  umbel reserve images --false-positive 0.01 --capacity 1e6 --confirm 'HEAD {advertise}/{key}'
  umbel reserve kv --chains 8 --capacity 1e6")]
pub(crate) struct Reserve {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    /// Chance that a lookup of an absent key names any wrong host; with --chains, that a depth is
    /// too large by more than the step [default with --chains: 1e-8]
    #[arg(long, value_name = "RATE", value_parser = values::rate, required_unless_present = "chains")]
    false_positive: Option<Rate>,
    /// Number of this host's keys that it is planned for; it grows beyond them
    #[arg(long, value_name = "KEYS", value_parser = values::items)]
    capacity: u64,
    /// Hosts that the rate is planned for [default: the host's configuration]
    #[arg(long, value_name = "HOSTS", value_parser = values::some)]
    hosts: Option<u64>,
    /// When its replicas are updated [default: the host's configuration]
    #[arg(long)]
    policy: Option<Policy>,
    /// Seconds after which keys expire; 'none': never [default: the host's configuration]
    #[arg(long, value_name = "SECONDS", value_parser = lifetime)]
    lifetime: Option<String>,
    /// How the host's cache is asked before a key is confirmed, as 'HEAD {advertise}/{key}';
    /// 'none': the catalogue decides [default: the host's configuration]
    #[arg(long, value_name = "HOW")]
    confirm: Option<Confirm>,
    /// Make it a set of chains, whose depths are multiples of this many keys: see umbel chain
    #[arg(long, value_name = "STEP",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(ChainQuery::MAX_STEP)))]
    chains: Option<u32>,
    /// Apply this at every host of the cluster
    #[arg(long)]
    all_hosts: bool,
    #[command(flatten)]
    options: Options,
}

/// Default probability that a depth is too large by more than the step.
const DEFAULT_OVER_ESTIMATE: f64 = 1e-8;

impl Reserve {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut words = vec![
            "UMBEL.RESERVE".to_owned(),
            self.set.clone(),
            self.false_positive.map_or(DEFAULT_OVER_ESTIMATE, Rate::get).to_string(),
            self.capacity.to_string(),
        ];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        option("HOSTS", self.hosts.map(|hosts| hosts.to_string()));
        option("POLICY", self.policy.map(|policy| policy.to_string()));
        option("LIFETIME", self.lifetime.clone());
        option("CONFIRM", self.confirm.as_ref().map(ToString::to_string));
        option("CHAINS", self.chains.map(|step| step.to_string()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        execute(&self.options, self.all_hosts, &words)
    }
}

/// Sends the command to one host or to all, and reports every host.
fn execute(options: &Options, all_hosts: bool, words: &[&str]) -> anyhow::Result<ExitCode> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    if all_hosts {
        return everyone(options, &words);
    }
    let mut client = options.at.connect()?;
    client.execute(&words)?;
    if options.json {
        print(&format!("{}\n", serde_json::to_string(&[HostResult::done(client.address())])?))?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `umbel serve`: a host.
//!
//! Its flags are made from the table of keys, so that they are the configuration's, all of
//! them and with the same words; what they say is the strongest layer.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use umbel_node::settings::{Draft, KEYS, Key, Kind, Layer};

/// Run a host
#[derive(Args)]
#[command(after_help = "\
A host answers which hosts hold a key from its own memory, and tells the others what it
holds. Flags overrule the environment (UMBEL_NAME, UMBEL_SET_CAPACITY, ...), and that the
file; umbel config shows what holds. SIGTERM and Ctrl-C stop it in good order.

Examples:
  umbel serve --name a --memory
  umbel serve --name b --data /var/lib/umbel --resp 127.0.0.1:7450 --http 127.0.0.1:7451 \\
              --listen 127.0.0.1:7457 --peer 127.0.0.1:7447
  umbel serve --config /etc/umbel.toml")]
pub(crate) struct Serve {
    #[command(flatten)]
    configuration: Configuration,
    /// Print the ports as one JSON line, {\"resp\": ..., \"http\": ..., \"listen\": ...}, when they are open
    #[arg(long, value_name = "FORMAT")]
    print_ports: Option<PortsFormat>,
    /// Stop when standard input is closed: for whoever starts a host and may be killed
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

/// How ports are told to whoever started the host.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PortsFormat {
    /// One JSON object on one line.
    Json,
}

impl Serve {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let settings = self.configuration.draft()?.settings()?;
        serve_settings(settings, self.print_ports)
    }
}

/// The one place where a host is started: settings in, exit status out.
fn serve_settings(
    settings: umbel_node::Settings,
    ports: Option<PortsFormat>,
) -> anyhow::Result<ExitCode> {
    _ = (settings, ports);
    anyhow::bail!("this build has no host in it yet")
}

/// File, environment and flags.
#[derive(Args)]
pub(crate) struct Configuration {
    /// Configuration file; umbel config init writes one
    #[arg(long, value_name = "FILE", env = "UMBEL_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

impl Configuration {
    /// All layers, laid on top of each other.
    pub(crate) fn draft(&self) -> anyhow::Result<Draft> {
        let mut draft = Draft::new();
        if let Some(file) = &self.config {
            draft = draft.with(Layer::file(file)?)?;
        }
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            // What is no text cannot be one of ours.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Ok(draft.with(Layer::environment(variables)?)?.with(self.flags.layer()?)?)
    }
}

/// One flag a key.
struct Flags(Vec<(&'static str, Vec<String>)>);

impl Flags {
    fn layer(&self) -> anyhow::Result<Layer> {
        let mut layer = Layer::flags();
        for (key, values) in &self.0 {
            layer.set(key, values.iter().cloned())?;
        }
        Ok(layer)
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(KEYS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let values = |key: &'static Key| -> Option<(&'static str, Vec<String>)> {
            let given = match key.kind {
                Kind::Switch => matches.get_flag(key.name).then(|| vec!["true".to_owned()]),
                _ => matches.get_many(key.name).map(|values| values.cloned().collect()),
            };
            given.map(|values| (key.name, values))
        };
        Ok(Self(KEYS.iter().filter_map(values).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flag(key: &'static Key) -> Arg {
    let default = key.default.filter(|_| key.kind != Kind::Switch);
    let help = match default {
        Some(default) => format!("{} [default: {default}]", key.what),
        None => key.what.to_owned(),
    };
    let arg = Arg::new(key.name).long(key.flag()).help(help);
    match key.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::Many => arg.value_name(key.value).action(ArgAction::Append),
        // Flags are seen by everybody who lists processes.
        Kind::Secret => arg.value_name(key.value).hide(true),
        _ => arg.value_name(key.value),
    }
}

//! `umbel serve`: runs a host.
//!
//! Its flags are generated from the table of configuration keys: every key that is not a secret has
//! a flag with the same name and description. Flags override all other sources of configuration.

use std::io::{Read as _, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};
#[cfg(feature = "otel")]
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, reload};
use umbel_node::settings::{Draft, KEYS, Key, Kind, Layer, LogFormat};
#[cfg(feature = "otel")]
use umbel_node::traces::TraceLayer;
use umbel_node::{Addresses, Host, Settings, SettingsError};

use crate::output::print;

/// Run a host
#[derive(Args)]
#[command(after_help = "\
A host answers from its own memory which hosts hold a key, and publishes what it holds itself.
Flags override environment variables (UMBEL_NAME, UMBEL_SET_CAPACITY, ...), which override the
configuration file; umbel config show prints the result. SIGTERM and Ctrl-C stop the host
cleanly; SIGHUP reloads policies, users, certificates, peers, watched directories and the log
level, and refuses a configuration in which anything else has changed, such as a port.

Examples:
  umbel serve --name a --memory
  umbel serve --name b --data /var/lib/umbel --resp 127.0.0.1:7450 --http 127.0.0.1:7451 \\
              --listen 127.0.0.1:7457 --peer 127.0.0.1:7447
  umbel serve --name c --memory --link a@127.0.0.1:7447 --link d     # in an overlay
  umbel serve --config /etc/umbel.toml")]
pub(crate) struct Serve {
    #[command(flatten)]
    configuration: Configuration,
    /// Print the open ports as one JSON line: {"resp": ..., "http": ..., "listen": ...}
    #[arg(long, value_name = "FORMAT")]
    print_ports: Option<PortsFormat>,
    /// Stop when standard input is closed, so that the host ends with its parent process
    #[arg(long, hide = true)]
    stop_with_input: bool,
}

/// How the ports are reported to whoever started the host.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PortsFormat {
    /// One JSON object on one line.
    Json,
}

impl Serve {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let settings = self.configuration.draft()?.settings()?;
        // Its end sends the last traces.
        let (log, _traces) = start_log(&settings)?;
        raise_descriptor_limit();
        let runtime = umbel_node::runtime()?;
        let served = runtime.block_on(self.serve(settings, &log));
        // Do not wait for tasks that are still running.
        runtime.shutdown_background();
        served.map(|()| ExitCode::SUCCESS)
    }

    /// Runs a host until a signal or a closed input stops it.
    async fn serve(&self, settings: Settings, log: &Log) -> anyhow::Result<()> {
        // Catch signals from the start: a process that reads that the host is ready may stop it at
        // once.
        let (mut again, mut stop) = (signal(SignalKind::hangup())?, StopSignals::new()?);
        let host = tokio::select! {
            started = Host::builder().settings(settings).start() => started?,
            () = stop.received() => {
                tracing::info!("stopped while starting");
                return Ok(());
            }
        };
        let addresses = host.addresses();
        match self.print_ports {
            Some(PortsFormat::Json) => print(&format!("{}\n", ports_json(addresses)))?,
            None => print(&ports_text(&host, addresses))?,
        }
        notify_manager(&NotifyState::Ready);
        let mut closed = std::pin::pin!(input_closed(self.stop_with_input));
        let failed = loop {
            tokio::select! {
                () = stop.received() => break None,
                () = &mut closed => break None,
                reason = host.failed() => break Some(reason),
                _ = again.recv() => self.reload(&host, log).await,
            }
        };
        tracing::info!("stopping");
        notify_manager(&NotifyState::Stopping);
        host.stop().await;
        failed.map_or(Ok(()), |reason| Err(anyhow::anyhow!("{reason}")))
    }
}

impl Serve {
    /// Reads the configuration again and applies it; if it is invalid, nothing changes.
    async fn reload(&self, host: &Host, log: &Log) {
        match self.try_reload(host, log).await {
            Ok(()) => {
                tracing::info!("configuration read again");
                notify_manager(&NotifyState::Status("serving"));
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(%error, "the configuration stays as it was");
                // `systemctl status` shows it; `systemctl reload` cannot fail.
                let status = format!("reload refused: {}", umbel::text::for_log(&error));
                notify_manager(&NotifyState::Status(&status));
            }
        }
    }

    async fn try_reload(&self, host: &Host, log: &Log) -> anyhow::Result<()> {
        let settings = self.configuration.draft()?.settings()?;
        let levels = levels(&settings)?;
        host.reload(settings).await?;
        log(levels)
    }
}

/// Lets this process open as many files as it may ask for: the usual limit of a shell (1024) is meant
/// for programs that use `select`, and would leave room for few clients. If it fails, the host says
/// how many it serves.
fn raise_descriptor_limit() {
    const MAX: libc::rlim_t = 1 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[allow(unsafe_code, reason = "no safe form of these system calls is at hand")]
    // SAFETY: both calls read or write only the structure that they are given.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_cur.max(limit.rlim_max.min(MAX));
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// The signals that stop a host cleanly.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From here on they no longer end the process by themselves.
    fn new() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Notifies the service manager (systemd), if it started this process and requested notifications.
fn notify_manager(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// Changes the log filter.
type Log = Box<dyn Fn(EnvFilter) -> anyhow::Result<()>>;

/// Writes to standard error, one line per event whatever the event contains: names and messages of
/// clients, other hosts and files appear in the log and must not be able to forge lines.
struct LogLines;

impl Write for LogLines {
    /// The log writes each event with one call.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        std::io::stderr().write_all(log_line(event).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

fn log_line(event: &[u8]) -> String {
    let event = String::from_utf8_lossy(event);
    format!("{}\n", umbel::text::for_log(event.trim_end_matches('\n')))
}

/// Logs go to standard error, so that standard output contains only answers. There are no colours:
/// the log's own escape sequences could not be distinguished from those that came from outside.
fn start_log(settings: &Settings) -> anyhow::Result<(Log, Traces)> {
    let (filter, handle) = reload::Layer::new(levels(settings)?);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| LogLines);
    let lines = match settings.log_format {
        LogFormat::Json => lines.json().boxed(),
        LogFormat::Text => lines.boxed(),
    };
    // The filter is that of the lines alone: which spans are exported does not depend on the level.
    let log = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "otel")]
    let (layer, traces) = umbel_node::traces::start(settings).unzip();
    #[cfg(feature = "otel")]
    let log = log.with(layer.map(|layer| layer.with_filter(filter_fn(TraceLayer::wants))));
    #[cfg(not(feature = "otel"))]
    let traces = None;
    log.init();
    Ok((Box::new(move |levels| Ok(handle.reload(levels)?)), traces))
}

/// What exports traces, if anything does.
#[cfg(feature = "otel")]
type Traces = Option<umbel_node::traces::Exporter>;
#[cfg(not(feature = "otel"))]
type Traces = Option<std::convert::Infallible>;

/// zenoh logs links that open and close as warnings and errors. Hosts report what matters of that
/// in their own lines, so zenoh's are shown only at level debug.
fn levels(settings: &Settings) -> anyhow::Result<EnvFilter> {
    let mut levels = settings.log_level.clone();
    let shows_all = levels.split(',').any(|level| ["debug", "trace"].contains(&level.trim()));
    if !levels.contains("zenoh") && !shows_all {
        levels += ",zenoh=off";
    }
    Ok(EnvFilter::try_new(levels)?)
}

fn ports_json(addresses: Addresses) -> serde_json::Value {
    let text = |address: Option<SocketAddr>| address.map(|address| address.to_string());
    serde_json::json!({
        "resp": text(addresses.resp),
        "http": text(addresses.http),
        "listen": text(addresses.listen),
    })
}

fn ports_text(host: &Host, addresses: Addresses) -> String {
    let mut text = format!("host {}\n", host.name());
    for (what, address) in [
        ("Redis clients", addresses.resp),
        ("HTTP", addresses.http),
        ("other hosts", addresses.listen),
    ] {
        if let Some(address) = address {
            text += &format!("  {what:<14} {address}\n");
        }
    }
    text
}

/// Returns when the other end of standard input is closed.
async fn input_closed(wanted: bool) {
    if !wanted {
        return std::future::pending().await;
    }
    let read = tokio::task::spawn_blocking(|| {
        let mut sink = [0; 256];
        while std::io::stdin().read(&mut sink).is_ok_and(|read| read > 0) {}
    });
    let _ = read.await;
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
    /// All configuration layers, merged.
    pub(crate) fn draft(&self) -> anyhow::Result<Draft> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            // Skip variables that are not UTF-8: umbel's own always are.
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let layers = [
            self.config.as_deref().map_or_else(|| Ok(Layer::default()), Layer::file),
            Layer::environment(variables),
            self.flags.layer(),
        ];
        // Report the mistakes of all layers together.
        let (layers, mistakes): (Vec<_>, Vec<_>) = layers.into_iter().partition(Result::is_ok);
        SettingsError::all(mistakes)?;
        Ok(layers.into_iter().flatten().try_fold(Draft::new(), Draft::with)?)
    }
}

/// One flag per configuration key.
struct Flags(Vec<(&'static str, Vec<String>)>);

impl Flags {
    fn layer(&self) -> Result<Layer, SettingsError> {
        let mut layer = Layer::flags();
        let set =
            |(key, values): &(&'static str, Vec<String>)| layer.set(key, values.iter().cloned());
        SettingsError::all(self.0.iter().map(set).collect::<Vec<_>>())?;
        Ok(layer)
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(flagged().map(flag))
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
        Ok(Self(flagged().filter_map(values).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Keys that have a flag. Secrets have none, because command lines are visible to other users.
fn flagged() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.kind != Kind::Secret)
}

fn flag(key: &'static Key) -> Arg {
    let default = key.default.filter(|_| key.kind != Kind::Switch);
    let help = match default {
        Some(default) => format!("{} [default: {default}]", key.what),
        None => key.what.to_owned(),
    };
    let arg = Arg::new(key.name).long(key.flag()).help(help).help_heading(key.heading());
    match key.kind {
        Kind::Switch => arg.action(ArgAction::SetTrue),
        Kind::Many => arg.value_name(key.value).action(ArgAction::Append),
        _ => arg.value_name(key.value),
    }
}

#[cfg(test)]
mod tests {
    use super::log_line;

    #[test]
    fn an_event_is_one_line_whatever_it_says() {
        let forged = "refused: 'x\n2026-01-01 INFO all is well\u{1b}[2J\u{202e}'\n";
        let line = log_line(forged.as_bytes());
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.ends_with('\n') && !line.trim_end().contains(umbel::text::is_unsafe));
        let json = serde_json::json!({ "name": forged }).to_string();
        let kept: serde_json::Value = serde_json::from_str(&log_line(json.as_bytes())).unwrap();
        assert_eq!(kept["name"], forged);
    }
}

//! `umbel doctor`: what is wrong with a host's configuration, folder, certificates, ports and
//! links, and what to do about it.
//!
//! It only looks and repairs nothing. A folder that a host has open is not touched; a port that
//! accepts connections is asked which host it is.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use redis::Value;
use serde::Serialize;
use umbel::text::for_terminal;
use umbel_node::modes::{private_paths, too_wide};
use umbel_node::network::peers_of;
use umbel_node::settings::{Endpoint, KeyFiles, PeerFiles, Storage, WatchedDirectory};
use umbel_node::watch::Follower;
use umbel_node::{Settings, tls};
use umbel_store::{Error, Options, Store};

use super::serve::Configuration;
use crate::client::{Address, At, Client, Fields};
use crate::output::print;

/// Check a host or its configuration for problems
#[derive(Args)]
#[command(after_help = "\
Takes the flags, the environment and the file that umbel serve takes, and checks each part:
the configuration itself, the directory of the catalogue (all of it is read, unless a host has it
open), watched directories, certificates and secrets, the ports, and whether every peer can
be reached. Nothing is changed, except that opening the directory truncates what a crash left
incomplete, as a host does. Exit status: 0 if a host would run well, 1 if something must be fixed.

Examples:
  umbel doctor --config /etc/umbel/umbel.toml
  umbel doctor --name a --data /var/lib/umbel --peer cache-2:7447 --json")]
pub(crate) struct Doctor {
    #[command(flatten)]
    configuration: Configuration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Result of one check.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    /// A host runs, but something should be improved.
    Warning,
    /// A host does not run, or not safely.
    Wrong,
}

/// One check and its result.
#[derive(Serialize)]
struct Finding {
    state: State,
    what: String,
    /// What was found, and what to do.
    detail: String,
}

/// All checks.
#[derive(Serialize, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, state: State, what: impl Into<String>, detail: impl Into<String>) {
        self.0.push(Finding { state, what: what.into(), detail: detail.into() });
    }

    fn worst(&self) -> State {
        self.0.iter().map(|finding| finding.state).max().unwrap_or(State::Ok)
    }
}

impl Doctor {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let mut found = Findings::default();
        match self.configuration.draft().and_then(|draft| Ok(draft.settings()?)) {
            Ok(settings) => {
                found.add(State::Ok, "configuration", format!("host '{}'", settings.name));
                examine(&settings, &mut found);
            }
            Err(error) => found.add(State::Wrong, "configuration", format!("{error:#}")),
        }
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&found)?))?;
        } else {
            print(&text_of(&found))?;
        }
        Ok(ExitCode::from(u8::from(found.worst() == State::Wrong)))
    }
}

fn text_of(found: &Findings) -> String {
    let width = found.0.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
    let line = |Finding { state, what, detail }: &Finding| {
        let state = match state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Wrong => "WRONG",
        };
        let (what, detail) = (for_terminal(what), for_terminal(detail));
        format!("{state:<8} {what:<width$}  {detail}\n")
    };
    found.0.iter().map(line).collect()
}

fn examine(settings: &Settings, found: &mut Findings) {
    let is_open = examine_storage(settings, found);
    examine_backups(settings, found);
    settings.watches.iter().for_each(|watch| examine_watch(watch, found));
    examine_modes(settings, found);
    if let Some(files) = &settings.tls {
        examine_certificate("certificate", files, None, found);
    }
    if let Some(PeerFiles { ca, own }) = &settings.peer_tls {
        match tls::check(ca, own) {
            Ok(()) => examine_certificate("host certificate", own, Some(settings), found),
            Err(error) => found.add(State::Wrong, "host certificate", error.to_string()),
        }
    }
    let runs = examine_ports(settings, is_open, found);
    examine_peers(settings, found);
    if let Some(client) = runs {
        examine_host(client, found);
    }
}

// ---- the folder

/// Whether a running host has the folder open.
fn examine_storage(settings: &Settings, found: &mut Findings) -> bool {
    let Storage::Folder(folder) = &settings.storage else {
        found.add(State::Ok, "catalogue", "in memory: gone when the host stops");
        return false;
    };
    let catalogue = folder.join("catalogue");
    if !catalogue.exists() {
        let detail = match folder.exists() {
            true => format!("{} is new: nothing is in it yet", folder.display()),
            false => format!("{} is not there yet; the host makes it", folder.display()),
        };
        found.add(State::Ok, "catalogue", detail);
        return false;
    }
    let read = read_all(&catalogue);
    let is_open = matches!(read, Err(Error::Locked));
    match read {
        Ok(records) => {
            found.add(State::Ok, "catalogue", format!("{records} records, all read"));
        }
        Err(Error::Locked) => {
            let detail = format!("{} is open in a running host: not read", catalogue.display());
            found.add(State::Ok, "catalogue", detail);
        }
        Err(error) => {
            let detail = format!(
                "{}: {error}; restore a backup (umbel restore), or let the \
                host begin anew in another folder",
                catalogue.display()
            );
            found.add(State::Wrong, "catalogue", detail);
        }
    }
    is_open
}

/// Reads and verifies every record, and returns their number.
fn read_all(catalogue: &Path) -> Result<u64, Error> {
    let store = Store::open(catalogue, Options::new().create(false))?;
    store.verify(|_| ())?;
    Ok(store.stat().records)
}

/// The directory of backups must exist: the host does not make it.
fn examine_backups(settings: &Settings, found: &mut Findings) {
    let Some(backups) = &settings.backups else { return };
    match std::fs::read_dir(backups) {
        Ok(_) => found.add(State::Ok, "backups", backups.display().to_string()),
        Err(error) => {
            let detail = format!(
                "{}: {error}; umbel backup is refused until it is a directory that the host's \
                 user can write",
                backups.display()
            );
            found.add(State::Warning, "backups", detail);
        }
    }
}

// ---- watched directories

/// Checks that a directory can be followed, and that it has files.
fn examine_watch(watch: &WatchedDirectory, found: &mut Findings) {
    let (what, dir) = (format!("watch of '{}'", watch.set), watch.dir.display());
    let tree = watch.tree();
    if let Err(error) = Follower::new(tree.clone()) {
        let detail = format!("{dir}: {error}; the set keeps its keys until it can be read");
        return found.add(State::Wrong, what, detail);
    }
    match tree.is_empty() && !watch.allow_empty {
        true => {
            let detail = format!("{dir}: no files in it: nothing is removed (allow_empty)");
            found.add(State::Warning, what, detail);
        }
        false => found.add(State::Ok, what, format!("{dir}")),
    }
}

// ---- secrets and certificates

/// Files and folders that only their owner should be able to read.
fn examine_modes(settings: &Settings, found: &mut Findings) {
    for (what, path, mode) in private_paths(settings) {
        let is_new = what == "data" && !path.exists();
        match (std::fs::metadata(path), too_wide(what, path, mode)) {
            (Err(_), _) if is_new => {}
            (Err(error), _) => {
                found.add(State::Wrong, what, format!("{}: {error}", path.display()));
            }
            (Ok(_), Some(wide)) => found.add(State::Warning, what, wide.to_string()),
            (Ok(_), None) => found.add(State::Ok, what, path.display().to_string()),
        }
    }
}

/// Checks a certificate: its names, whether its key matches, and how long it is valid.
fn examine_certificate(
    what: &str,
    files: &KeyFiles,
    host: Option<&Settings>,
    found: &mut Findings,
) {
    if let Err(error) = tls::Certificates::read(files) {
        return found.add(State::Wrong, what, error.to_string());
    }
    match (host, tls::common_name(&files.cert)) {
        (Some(settings), Ok(name)) if name != settings.name.as_str() => {
            let own = &settings.name;
            let detail = format!("it is of '{name}', this host is '{own}': others refuse it");
            return found.add(State::Wrong, what, detail);
        }
        (_, Err(error)) if host.is_some() => {
            return found.add(State::Wrong, what, error.to_string());
        }
        _ => {}
    }
    match tls::expires(&files.cert) {
        Err(error) => found.add(State::Wrong, what, error.to_string()),
        Ok(end) => {
            let left = end.duration_since(SystemTime::now()).unwrap_or_default().as_secs() / 86_400;
            let (state, detail) = match left {
                0 => (State::Wrong, "its time is over: make another".to_owned()),
                1..30 => (State::Warning, format!("good for {left} days only: make another")),
                _ => (State::Ok, format!("good for {left} days")),
            };
            found.add(state, what, detail);
        }
    }
}

// ---- ports and links

/// Checks whether the ports are free or a host uses them, and returns a connection to that host. A
/// host that has the folder open uses the ports too.
fn examine_ports(settings: &Settings, is_open: bool, found: &mut Findings) -> Option<Client> {
    let mut runs = None;
    for (what, address) in [
        ("port for Redis clients", settings.resp),
        ("port for HTTP", settings.http),
        ("port for other hosts", Some(settings.listen)),
    ] {
        let Some(address) = address else { continue };
        if let Err(error) = TcpListener::bind(address) {
            if runs.is_none() && Some(address) == settings.resp {
                runs = running(address);
            }
            let is_guarded = settings.users.is_some() || settings.tls.is_some();
            let (state, detail) = match (&runs, error.kind()) {
                (Some(_), std::io::ErrorKind::AddrInUse) => (State::Ok, "a host has it".to_owned()),
                (None, std::io::ErrorKind::AddrInUse) if is_guarded && is_open => {
                    (State::Ok, "the host has it, and wants a login or TLS".to_owned())
                }
                (None, std::io::ErrorKind::AddrInUse) if is_guarded => {
                    let detail = "taken, by a host that wants a login or TLS or by something else";
                    (State::Warning, detail.to_owned())
                }
                _ => (State::Wrong, format!("{error}: choose another, or end what has it")),
            };
            found.add(state, what, format!("{address}: {detail}"));
        } else {
            found.add(State::Ok, what, format!("{address} is free"));
        }
    }
    runs
}

/// A connection to the host at an address, unless it requires a login.
fn running(address: SocketAddr) -> Option<Client> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"PING\r\n").ok()?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).ok()?;
    if &answer != b"+PONG\r\n" {
        return None;
    }
    At::open(&Address::parse(&address.to_string()).ok()?).connect().ok()
}

/// Timeout for a peer's reply.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks the peers of the configuration, of the peers file and of the DNS name.
fn examine_peers(settings: &Settings, found: &mut Findings) {
    if let Some(name) = &settings.peers_dns
        && let Err(error) = name.address().to_socket_addrs()
    {
        let detail = format!("{}: {error}; links wait until it means something", name.address());
        found.add(State::Warning, "peers_dns", detail);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let peers = runtime.map_err(|error| error.to_string());
    match peers.and_then(|runtime| runtime.block_on(peers_of(settings))) {
        Ok(peers) => peers.iter().for_each(|peer| examine_peer(peer, settings, found)),
        Err(error) => found.add(State::Wrong, "peers_file", error),
    }
}

fn examine_peer(peer: &Endpoint, settings: &Settings, found: &mut Findings) {
    let what = format!("peer {peer}");
    let addresses = match peer.address().to_socket_addrs() {
        Ok(addresses) => addresses.collect::<Vec<_>>(),
        Err(error) => {
            let detail = format!("no such name: {error}; links to it wait until there is");
            return found.add(State::Warning, what, detail);
        }
    };
    let reached =
        addresses.iter().find(|address| TcpStream::connect_timeout(address, PATIENCE).is_ok());
    if let (Some(address), Some(files)) = (reached, &settings.peer_tls) {
        let (state, detail) = match (tls::greet(*address, files, PATIENCE), peer.host_name()) {
            (Err(error), _) => (State::Wrong, error),
            (Ok(shown), Some(name)) if shown != name.as_str() => {
                (State::Wrong, format!("it shows the certificate of '{shown}'"))
            }
            (Ok(shown), _) => (State::Ok, format!("reached: it is '{shown}'")),
        };
        found.add(state, what, detail);
    } else if reached.is_some() {
        found.add(State::Ok, what, "reached");
    } else {
        let detail = "not reached: start it, or open the way to it; links wait until then";
        found.add(State::Warning, what, detail);
    }
}

// ---- a host that runs

/// Checks the counters of a running host that should be zero, and how complete its answers are.
fn examine_host(mut client: Client, found: &mut Findings) {
    let what = "running host";
    let answer = match client.ask(&[b"UMBEL.INFO"]) {
        Ok(answer) => answer,
        Err(error) => return found.add(State::Warning, what, format!("{error:#}")),
    };
    let Some(fields) = Fields::of(&answer) else {
        return found.add(State::Warning, what, "it answers what no host of ours would");
    };
    let number = |name: &str| fields.number(name).unwrap_or(0.0);
    if number("name_taken") > 0.0 {
        found.add(State::Wrong, what, "another host has its name: give one of them another");
    }
    if let Some(reason) = fields.text("catalogue_failure") {
        let text = format!("it refuses changes until its catalogue can be written: {reason}");
        found.add(State::Wrong, what, text);
    }
    for failure in fields.texts("watch_failures") {
        let text = format!("a set does not follow its directory: {failure}");
        found.add(State::Wrong, what, text);
    }
    match number("not_accepted") {
        0.0 if number("refused") > 0.0 => {
            found.add(State::Warning, what, "it refuses messages of other hosts: its log says why");
        }
        0.0 => {}
        refused => add_refusals(&mut client, refused as usize, found),
    }
    if number("links_reopened") > 0.0 {
        let text = "it is linked with hosts that did not reply: look at both logs";
        found.add(State::Warning, what, text);
    }
    for missing in fields.texts("missing_hosts") {
        // A refusal lasts until a setting is changed.
        let state = if missing.contains("refused") { State::Wrong } else { State::Warning };
        found.add(state, "missing host", format!("{missing}: {}", advice(&missing)));
    }
    let (known, expected) = (number("hosts_known"), number("hosts_expected"));
    let state = if known < expected { State::Warning } else { State::Ok };
    found.add(
        state,
        what,
        format!("knows the sets of {known} of {expected} hosts, its own among them"),
    );
}

/// Maximum number of refusals listed one by one; `umbel hosts` lists all of them.
const NAMED_REFUSALS: usize = 8;

/// Adds which replicas and hosts a running host does not accept, and why.
fn add_refusals(client: &mut Client, count: usize, found: &mut Findings) {
    let answer = client.ask(&[b"UMBEL.HOSTS"]).ok();
    let hosts = answer.as_ref().and_then(Value::as_sequence).unwrap_or_default();
    let mut named = 0;
    for fields in hosts.iter().filter_map(Fields::of) {
        let host = fields.text("name").unwrap_or_default();
        for refusal in fields.texts("not_accepted").iter().take(NAMED_REFUSALS - named) {
            let text = format!("of '{host}', {refusal}: raise {}", limit_of(refusal));
            found.add(State::Warning, "refused by a limit", text);
            named += 1;
        }
    }
    if count > named {
        let text = format!("{} more: umbel hosts names them", count - named);
        found.add(State::Warning, "refused by a limit", text);
    }
}

/// The setting whose limit causes a refusal.
fn limit_of(refusal: &str) -> &'static str {
    let known = [
        ("free for replicas", "limits.replica_bytes"),
        ("its filter has", "limits.filter_bits"),
        ("sets that are accepted", "limits.sets"),
        ("other hosts already", "limits.hosts"),
        ("own sets past", "limits.own_bytes"),
    ];
    let found = known.into_iter().find(|(reason, _)| refusal.contains(reason));
    found.map_or("the limit that it names", |(_, limit)| limit)
}

/// What to do about a host that is missing.
fn advice(missing: &str) -> &'static str {
    let known = [
        ("unreachable", "start it, open the way to it, or take it out of the peers"),
        ("other hash key", "give both the same hash_key"),
        ("other cluster", "give both the same cluster, or take it out of the peers"),
        ("over budget", "raise limits.replica_bytes"),
        ("refused", "umbel hosts and the log say more"),
        ("behind", "its updates do not arrive: look at both logs"),
    ];
    let found = known.into_iter().find(|(reason, _)| missing.contains(reason));
    found.map_or("wait; if it stays so, look at both logs", |(_, advice)| advice)
}

//! Host processes of this same binary, on this machine, linked to each other.
//!
//! Always true: when the [`Cluster`] is dropped, also after an error or a panic, its processes have
//! ended and been waited for, and its folder is removed. If this process is killed with SIGKILL,
//! the hosts end by themselves, because their standard input closes.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use tempfile::TempDir;

use super::signals::Stop;
use crate::client::Address;

/// Running hosts.
pub(super) struct Cluster {
    hosts: Vec<Host>,
    /// The host that was killed, if one is gone.
    killed: Option<usize>,
    folder: TempDir,
}

/// One of them.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) at: Address,
    /// Its HTTP address.
    pub(super) http: String,
    listen: String,
    child: Child,
}

/// What a host prints when its ports are open.
#[derive(Deserialize)]
struct Ports {
    resp: String,
    http: String,
    listen: String,
}

impl Cluster {
    /// Starts hosts one after the other, each linked to all before it.
    pub(super) fn start(hosts: usize, stop: &Stop) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("umbel-demo-").tempdir();
        let folder = folder.context("cannot make a temporary folder")?;
        let mut cluster = Self { hosts: Vec::new(), killed: None, folder };
        for number in 1..=hosts {
            cluster.start_one(&format!("host-{number}"), stop)?;
        }
        Ok(cluster)
    }

    pub(super) fn hosts(&self) -> impl ExactSizeIterator<Item = &Host> {
        self.hosts.iter()
    }

    /// Ends a host as a crash would.
    pub(super) fn kill(&mut self, place: usize) -> anyhow::Result<()> {
        let host = &mut self.hosts[place];
        self.killed = Some(place);
        host.child.kill().and_then(|()| host.child.wait()).map(drop).context("cannot kill a host")
    }

    /// Starts a host that was killed, with its catalogue and at its old ports.
    pub(super) fn restart(&mut self, place: usize, stop: &Stop) -> anyhow::Result<()> {
        let host = &self.hosts[place];
        let name = host.name.clone();
        let ports = [host.at.to_string(), host.http.clone(), host.listen.clone()];
        let child = self.command(&name, &ports)?.spawn().context("cannot start a host")?;
        self.hosts[place].child = child;
        self.killed = None;
        self.ports_of(place, stop).map(drop)
    }

    /// Checks that all of them still run, but for one that was killed.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        let killed = self.killed;
        let running = self.hosts.iter_mut().enumerate().filter(|(place, _)| Some(*place) != killed);
        for (_, host) in running {
            if let Some(status) = host.child.try_wait()? {
                bail!(
                    "{} has ended ({status}): {}",
                    host.name,
                    last_words(self.folder.path(), &host.name)
                );
            }
        }
        Ok(())
    }

    fn start_one(&mut self, name: &str, stop: &Stop) -> anyhow::Result<()> {
        let any = ["127.0.0.1:0"; 3].map(str::to_owned);
        let child = self.command(name, &any)?.spawn().context("cannot start a host")?;
        // From here on the cluster owns the process and ends it, whatever it prints.
        let at = Address::parse("127.0.0.1:1").map_err(|error| anyhow!(error))?;
        self.hosts.push(Host {
            name: name.to_owned(),
            at,
            http: String::new(),
            listen: String::new(),
            child,
        });
        let place = self.hosts.len() - 1;
        let ports = self.ports_of(place, stop)?;
        let host = &mut self.hosts[place];
        host.at = Address::parse(&ports.resp).map_err(|error| anyhow!("{name}: {error}"))?;
        host.http = ports.http;
        host.listen = ports.listen;
        Ok(())
    }

    /// What a host prints when its ports are open.
    fn ports_of(&mut self, place: usize, stop: &Stop) -> anyhow::Result<Ports> {
        let (folder, host) = (self.folder.path(), &mut self.hosts[place]);
        let name = &host.name;
        let output = host.child.stdout.take().expect("its output is a pipe");
        let line = first_line(output, stop)
            .map_err(|why| anyhow!("{name} {why}: {}", last_words(folder, name)))?;
        serde_json::from_str(&line)
            .with_context(|| format!("{name} printed '{}' instead of its ports", line.trim()))
    }

    fn command(&self, name: &str, [resp, http, listen]: &[String; 3]) -> anyhow::Result<Command> {
        let binary = std::env::current_exe().context("cannot find this program")?;
        let folder = self.folder.path();
        let log =
            File::options().create(true).append(true).open(folder.join(format!("{name}.log")))?;
        let mut command = Command::new(binary);
        command.args(["serve", "--name", name, "--cluster", "demo"]);
        command.arg("--data").arg(folder.join(name));
        command.args(["--resp", resp, "--http", http, "--listen", listen]);
        command.args(["--print-ports", "json", "--stop-with-input", "--log-level", "warn"]);
        for peer in self.hosts.iter().filter(|peer| peer.name != name) {
            command.args(["--peer", &peer.listen]);
        }
        // The user's environment may configure other hosts; do not apply it to these.
        for (variable, _) in std::env::vars_os() {
            if variable.to_string_lossy().starts_with("UMBEL_") {
                command.env_remove(variable);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        // Ctrl-C must reach only the demo, which then stops the hosts cleanly.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(command)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for host in &mut self.hosts {
            drop(host.child.stdin.take());
        }
        let deadline = Instant::now() + ENDING;
        for host in &mut self.hosts {
            while matches!(host.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
            // Both fail only if the process has ended.
            _ = host.child.kill();
            _ = host.child.wait();
        }
    }
}

/// Timeouts for hosts to start and to end.
const STARTING: Duration = Duration::from_secs(30);
const ENDING: Duration = Duration::from_secs(5);

/// The first line that a host prints. The rest is read and discarded, so that the host never blocks
/// on a full pipe.
fn first_line(output: ChildStdout, stop: &Stop) -> Result<String, &'static str> {
    let (sender, received) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(output).lines();
        if let Some(Ok(line)) = lines.next() {
            _ = sender.send(line);
        }
        drop(sender);
        lines.for_each(drop);
    });
    let deadline = Instant::now() + STARTING;
    loop {
        match received.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Disconnected) => return Err("did not start"),
            Err(RecvTimeoutError::Timeout) if stop.is_set() => return Err("was stopped"),
            Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                return Err("does not open its ports");
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The last line of a host's log.
fn last_words(folder: &Path, name: &str) -> String {
    let log = std::fs::read_to_string(folder.join(format!("{name}.log"))).unwrap_or_default();
    let last = log.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("it said nothing").to_owned()
}

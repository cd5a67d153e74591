//! A real host, a process of its own, for as long as a test needs it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A host named `a`, alone, in memory.
pub(crate) struct Real {
    pub(crate) at: String,
    pub(crate) http: String,
    child: Child,
}

impl Real {
    pub(crate) fn start() -> Self {
        Self::run(Command::new(assert_cmd::cargo::cargo_bin("umbel")), &[])
    }

    /// One with more flags.
    pub(crate) fn with_flags(flags: &[&str]) -> Self {
        Self::run(Command::new(assert_cmd::cargo::cargo_bin("umbel")), flags)
    }

    /// Makes it read its configuration again.
    pub(crate) fn reload(&self) {
        let process = self.child.id().to_string();
        let status = Command::new("kill").args(["-HUP", &process]).status();
        assert!(status.expect("coreutils").success());
    }

    /// One that may open so many files, with more flags.
    pub(crate) fn with_descriptors(max: u32, flags: &[&str]) -> Self {
        Self::after(&format!("ulimit -n {max}"), flags)
    }

    /// One that a shell becomes after a command.
    pub(crate) fn after(command: &str, flags: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        let script = format!("{command} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script]).arg(assert_cmd::cargo::cargo_bin("umbel"));
        Self::run(shell, flags)
    }

    /// Files that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it runs").count()
    }

    /// Lets it open so many files from now on; returns how many it could until now.
    pub(crate) fn limit_descriptors(&self, max: usize) -> usize {
        let process = self.child.id().to_string();
        let prlimit = |arguments: &[&str]| {
            let output = Command::new("prlimit").args(["--pid", &process]).args(arguments).output();
            let output = output.expect("util-linux is installed");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let before = prlimit(&["--nofile", "--noheadings", "--raw", "--output", "SOFT"]);
        prlimit(&[&format!("--nofile={max}:")]);
        before.parse().expect("a number")
    }

    fn run(mut command: Command, flags: &[&str]) -> Self {
        command.args(["serve", "--name", "a", "--memory", "--print-ports", "json"]);
        command.args(["--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--listen", "127.0.0.1:0"]);
        command.args(["--stop-with-input", "--log-level", "error"]).args(flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a host starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says where it is");
        let ports: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let port = |name: &str| ports[name].as_str().expect("an address").to_owned();
        Self { at: port("resp"), http: port("http"), child }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

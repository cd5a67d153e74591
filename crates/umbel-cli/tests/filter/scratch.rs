//! A directory to run `umbel filter` in, gone when the test is over.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A directory with the key files `fruit` (apple, banana, cherry) and `more` (banana,
    /// date), and filters of `fruit` of each kind.
    pub(crate) fn with_filters() -> Self {
        let scratch = Self::new();
        scratch.write("fruit", "apple\nbanana\ncherry\n");
        scratch.write("more", "banana\ndate\n");
        for kind in ["standard", "counting", "dynamic"] {
            scratch.build(kind, &format!("{kind}.umbel"), "fruit", &[]);
        }
        scratch
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Builds a filter for a hundred keys at one in ten thousand.
    pub(crate) fn build(&self, kind: &str, file: &str, keys: &str, options: &[&str]) {
        let target = ["--items", "100", "--false-positive", "0.0001"];
        let args = ["build", "--kind", kind, "-o", file, keys];
        self.succeeds(&[&args[..], &target[..], options].concat());
    }

    pub(crate) fn run(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = cargo_bin_cmd!("umbel");
        command.arg("filter").args(args).current_dir(self.0.path()).write_stdin(input);
        command.output().unwrap()
    }

    /// Runs a command that must succeed; returns what it printed.
    pub(crate) fn succeeds(&self, args: &[&str]) -> String {
        let output = self.run(args, b"");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
        assert_eq!(stderr, "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command with `--json`; returns the object.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.succeeds(&[args, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that must be refused: exit 2, one line that says `why` in it, nothing
    /// printed and no file made, changed or left behind.
    pub(crate) fn refuses(&self, args: &[&str], why: &[&str]) {
        let before = self.files();
        let output = self.run(args, b"");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(output.stdout, b"", "{args:?}");
        assert!(stderr.starts_with("umbel: ") && stderr.ends_with('\n'), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        for words in why {
            assert!(stderr.contains(words), "{args:?}: {stderr:?} does not say {words:?}");
        }
        assert_eq!(self.files(), before, "{args:?} changed a file");
    }

    /// Every file with its contents.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
        entries
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }
}

//! The recipe of contrib/build-cache with ccache: how often the compiler runs, and what is uploaded,
//! with umbel and without.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::hosts::eventually;
use super::nginx::{Process, free};

/// Source files that are compiled on both machines.
const SOURCES: usize = 4;

fn recipe(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/build-cache").join(file)
}

/// The build cache of a machine, as the recipe starts it.
struct Machine {
    _process: Process,
    dir: PathBuf,
    listen: String,
    resp: String,
    between: String,
}

fn machine(name: &str, dir: PathBuf, peer: Option<&str>) -> Machine {
    let [listen, resp, http, between] = std::array::from_fn(|_| free());
    let mut script = Command::new(recipe("cache.sh"));
    script.arg(name).arg(&dir).args([&listen, &resp, &http, &between]).args(peer);
    script.env("UMBEL", env!("CARGO_BIN_EXE_umbel")).env("NGINX_USER", "root");
    script.stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process(script.spawn().expect("in a test"));
    for port in [&listen, &resp, &http] {
        eventually("the cache answers", || TcpStream::connect(port).is_ok());
    }
    Machine { _process: process, dir, listen, resp, between }
}

impl Machine {
    /// Objects that it holds, such as `ac/0a1b`.
    fn objects(&self) -> Vec<String> {
        let mut found = Vec::new();
        for kind in ["ac", "cas"] {
            let entries = std::fs::read_dir(self.dir.join("objects").join(kind));
            for entry in entries.into_iter().flatten().flatten() {
                found.push(format!("{kind}/{}", entry.file_name().to_string_lossy()));
            }
        }
        found
    }

    /// How many of these objects its host attributes to another machine.
    fn known(&self, objects: &[String], other: &str) -> usize {
        let mut umbel = Command::new(env!("CARGO_BIN_EXE_umbel"));
        umbel.args(["who", "build", "--at", &self.resp]).args(objects);
        String::from_utf8_lossy(&umbel.output().expect("it runs").stdout).matches(other).count()
    }
}

/// A build machine: sources, a compiler that counts, and a local cache of ccache.
struct Builds {
    folder: PathBuf,
}

impl Builds {
    fn new(folder: &Path) -> Self {
        let folder = folder.join("build");
        std::fs::create_dir(&folder).expect("in a test");
        for number in 0..SOURCES {
            let text = format!("int number_{number}(void) {{ return {number}; }}\n");
            std::fs::write(folder.join(format!("{number}.c")), text).expect("in a test");
        }
        // Counts what it compiles; ccache also lets it preprocess.
        let script = "#!/bin/sh\ncase \" $* \" in *\" -E \"*) ;; *) echo >> \"$RUNS\" ;; esac\nexec cc \"$@\"\n";
        let compiler = folder.join("counting-cc");
        std::fs::write(&compiler, script).expect("in a test");
        std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755))
            .expect("in a test");
        Self { folder }
    }

    /// Compiles all sources with an empty local cache; returns how often the compiler ran.
    fn build(&self, name: &str, cache: &str) -> usize {
        let (local, runs) = (self.folder.join(name), self.folder.join(format!("{name}.runs")));
        for number in 0..SOURCES {
            let mut ccache = Command::new("ccache");
            ccache.current_dir(&self.folder).arg(self.folder.join("counting-cc"));
            ccache.args(["-c", &format!("{number}.c"), "-o", &format!("{name}-{number}.o")]);
            ccache.env("CCACHE_DIR", &local).env("CCACHE_COMPILERTYPE", "gcc").env("RUNS", &runs);
            ccache.env("CCACHE_REMOTE_STORAGE", format!("http://{cache}|layout=bazel"));
            let output = ccache.output().expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        std::fs::read_to_string(runs).unwrap_or_default().lines().count()
    }
}

#[test]
fn a_build_takes_results_from_a_machine_that_has_them() {
    for (program, flag) in [("nginx", "-v"), ("ccache", "--version"), ("curl", "--version")] {
        if Command::new(program).arg(flag).output().is_err() {
            eprintln!("SKIPPED: {program} is not installed");
            return;
        }
    }
    let folder = tempfile::tempdir().expect("in a test");
    let path = |name: &str| folder.path().join(name);
    let builds = Builds::new(folder.path());
    let without: usize = {
        let (one, two) = (machine("a", path("a"), None), machine("b", path("b"), None));
        builds.build("alone-1", &one.listen) + builds.build("alone-2", &two.listen)
    };
    let one = machine("build-1", path("1"), None);
    let two = machine("build-2", path("2"), Some(&one.between));
    let mut with = builds.build("first", &one.listen);
    let results = one.objects();
    assert!(results.len() >= SOURCES, "{results:?}");
    eventually("the second machine knows what the first holds", || {
        two.known(&results, "build-1") == results.len()
    });
    with += builds.build("second", &two.listen);
    eprintln!("runs of the compiler: {without} without umbel, {with} with it");
    assert_eq!((without, with), (2 * SOURCES, SOURCES));

    // Uploads: only what no machine has yet.
    let local = path("local");
    std::fs::create_dir_all(local.join("cas")).expect("in a test");
    std::fs::create_dir_all(local.join("ac")).expect("in a test");
    for object in results.iter().map(String::as_str).chain(["cas/new-1", "cas/new-2"]) {
        std::fs::write(local.join(object), "bytes").expect("in a test");
    }
    let mut upload = Command::new(recipe("upload.sh"));
    upload.arg(&local).args([&two.listen, &two.resp]).env("UMBEL", env!("CARGO_BIN_EXE_umbel"));
    let output = upload.output().expect("it runs");
    let mut uploaded: Vec<&str> = str::from_utf8(&output.stdout).expect("text").lines().collect();
    uploaded.sort_unstable();
    assert_eq!(uploaded, ["cas/new-1", "cas/new-2"]);
    assert!(two.objects().contains(&"cas/new-1".to_owned()));
}

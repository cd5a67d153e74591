//! The recipe of contrib/nginx with a real nginx: what the origin is asked, with umbel and without.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::hosts::eventually;

const OBJECTS: usize = 20;

/// An origin that counts what it is asked for.
#[derive(Clone, Default)]
struct Origin(Arc<Mutex<BTreeMap<String, usize>>>);

impl Origin {
    fn open() -> (Self, String) {
        let (origin, listener) =
            (Self::default(), TcpListener::bind("127.0.0.1:0").expect("in a test"));
        let address = listener.local_addr().expect("in a test").to_string();
        let server = origin.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|s| server.serve(s)));
        (origin, address)
    }

    fn serve(&self, mut socket: TcpStream) {
        let mut lines = BufReader::new(socket.try_clone().expect("in a test")).lines();
        let Some(Ok(first)) = lines.next() else { return };
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        *self.0.lock().expect("in a test").entry(path.clone()).or_default() += 1;
        let body = format!("the object {path}");
        let length = body.len();
        let answer = format!("HTTP/1.0 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        let _ = socket.write_all(answer.as_bytes());
    }

    fn take_requests(&self) -> usize {
        std::mem::take(&mut *self.0.lock().expect("in a test")).values().sum()
    }
}

/// A process that is asked to end with the test, and ends those that it started.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn recipe() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/nginx")
}

/// An address that nobody listens at for the moment.
pub(super) fn free() -> String {
    TcpListener::bind("127.0.0.1:0")
        .expect("in a test")
        .local_addr()
        .expect("in a test")
        .to_string()
}

fn get(at: &str, path: &str) -> Option<String> {
    let mut socket = TcpStream::connect(at).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    socket.write_all(format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.to_owned())
}

/// Asks both caches for every object, the second one when it can know what the first has.
fn ask_both(caches: &[String; 2], mut between: impl FnMut()) {
    for (place, cache) in caches.iter().enumerate() {
        for object in 0..OBJECTS {
            let path = format!("/o/{object}");
            assert_eq!(get(cache, &path).as_deref(), Some(&*format!("the object {path}")));
        }
        if place == 0 {
            between();
        }
    }
}

fn without_umbel(dir: &Path, origin: &str) -> (Process, String) {
    let listen = free();
    let dir = dir.to_str().expect("in a test");
    std::fs::create_dir_all(format!("{dir}/objects")).expect("in a test");
    let conf = std::fs::read_to_string(recipe().join("cache.conf")).expect("in a test");
    let conf = conf.replace("@DIR@", dir).replace("@LISTEN@", &listen);
    let conf = conf.replace("@ORIGIN@", origin).replace("@UMBEL@", &free());
    std::fs::write(format!("{dir}/nginx.conf"), conf).expect("in a test");
    let mut nginx = Command::new("nginx");
    nginx.args(["-e", &format!("{dir}/error.log"), "-p", dir, "-c", &format!("{dir}/nginx.conf")]);
    if is_root() {
        nginx.args(["-g", "user root;"]);
    }
    (Process(nginx.stderr(Stdio::null()).spawn().expect("in a test")), listen)
}

pub(super) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("coreutils");
    id.stdout == b"0\n"
}

/// A cache as the recipe starts it: where nginx listens, and the ports of its host.
struct Cache {
    _process: Process,
    listen: String,
    resp: String,
    between: String,
}

fn with_umbel(name: &str, dir: &Path, origin: &str, peer: Option<&str>) -> Cache {
    let [listen, resp, http, between] = std::array::from_fn(|_| free());
    let mut script = Command::new(recipe().join("cooperate.sh"));
    script.arg(name).arg(dir).args([&listen, origin, &resp, &http, &between]).args(peer);
    script.env("UMBEL", env!("CARGO_BIN_EXE_umbel")).env("NGINX_USER", "root");
    let process =
        Process(script.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("in a test"));
    Cache { _process: process, listen, resp, between }
}

#[test]
fn two_nginx_caches_ask_the_origin_once() {
    if Command::new("nginx").arg("-v").output().is_err() {
        eprintln!("SKIPPED: nginx is not installed (Debian: nginx-light)");
        return;
    }
    let folder = tempfile::tempdir().expect("in a test");
    let (origin, at) = Origin::open();
    let path = |name: &str| folder.path().join(name);
    {
        let (_one, first) = without_umbel(&path("a"), &at);
        let (_two, second) = without_umbel(&path("b"), &at);
        let caches = [first, second];
        for cache in &caches {
            eventually("nginx answers", || TcpStream::connect(cache).is_ok());
        }
        ask_both(&caches, || {});
    }
    let without = origin.take_requests();

    let one = with_umbel("cache-1", &path("1"), &at, None);
    eventually("nginx answers", || TcpStream::connect(&one.listen).is_ok());
    let two = with_umbel("cache-2", &path("2"), &at, Some(&one.between));
    eventually("nginx answers", || TcpStream::connect(&two.listen).is_ok());
    ask_both(&[one.listen.clone(), two.listen.clone()], || {
        // Asked for by name; the set holds what nginx calls its files.
        let keys: Vec<String> = (0..OBJECTS).map(|object| format!("o/{object}")).collect();
        eventually("the second host knows what the first cache holds", || {
            let mut umbel = Command::new(env!("CARGO_BIN_EXE_umbel"));
            umbel.args(["who", "objects", "--at", &two.resp]).args(&keys);
            let printed = umbel.output().expect("it runs").stdout;
            String::from_utf8_lossy(&printed).matches("cache-1").count() == OBJECTS
        });
    });
    let with = origin.take_requests();
    eprintln!("requests to the origin: {without} without umbel, {with} with it");
    assert_eq!((without, with), (2 * OBJECTS, OBJECTS));
}

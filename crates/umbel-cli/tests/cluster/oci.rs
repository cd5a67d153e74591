//! The recipe of contrib/oci with skopeo: what the registry is asked, with umbel and without.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use umbel_node::Transform;

use super::hosts::eventually;
use super::nginx::{Process, free, is_root};

const IMAGE: &str = "library/test";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A registry with one image, which counts the blobs that it is asked for.
#[derive(Clone)]
struct Registry {
    manifest: Arc<[u8]>,
    blobs: Arc<BTreeMap<String, Vec<u8>>>,
    asked: Arc<Mutex<usize>>,
}

fn digest(bytes: &[u8]) -> String {
    let sha256: Transform = "sha256".parse().expect("in a test");
    format!("sha256:{}", String::from_utf8(sha256.key(bytes)).expect("in a test"))
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = Command::new("gzip");
    let mut gzip =
        gzip.arg("-nc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("in a test");
    gzip.stdin.take().expect("in a test").write_all(text.as_bytes()).expect("in a test");
    gzip.wait_with_output().expect("in a test").stdout
}

impl Registry {
    fn open() -> (Self, String) {
        let layers = [gzip("the first layer"), gzip(&"the second layer ".repeat(100_000))];
        let digests: Vec<String> = layers.iter().map(|layer| digest(layer)).collect();
        let config = serde_json::json!({
            "architecture": "amd64", "os": "linux", "config": {},
            "rootfs": { "type": "layers", "diff_ids": &digests },
        });
        let config = config.to_string().into_bytes();
        let entry = |kind: &str, blob: &[u8]| {
            let kind = format!("application/vnd.oci.image.{kind}");
            serde_json::json!({ "mediaType": kind, "size": blob.len(), "digest": digest(blob) })
        };
        let manifest = serde_json::json!({
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": entry("config.v1+json", &config),
            "layers": layers.each_ref().map(|layer| entry("layer.v1.tar+gzip", layer)),
        });
        let manifest = manifest.to_string().into_bytes().into();
        let blobs = layers.into_iter().chain([config]).map(|blob| (digest(&blob), blob));
        let registry = Self { manifest, blobs: Arc::new(blobs.collect()), asked: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").expect("in a test");
        let address = listener.local_addr().expect("in a test").to_string();
        let server = registry.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || server.serve(socket));
            }
        });
        (registry, address)
    }

    fn serve(&self, mut socket: TcpStream) {
        let mut lines = BufReader::new(socket.try_clone().expect("in a test")).lines();
        let Some(Ok(first)) = lines.next() else { return };
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        let (method, path) = first.split_once(' ').unwrap_or_default();
        let path = path.split([' ', '?']).next().unwrap_or_default();
        let body = match path.strip_prefix(&format!("/v2/{IMAGE}/")).and_then(|p| p.split_once('/'))
        {
            None if path == "/v2/" => Some((b"{}".to_vec(), "application/json")),
            Some(("manifests", _)) => Some((self.manifest.to_vec(), MANIFEST)),
            Some(("blobs", digest)) => {
                *self.asked.lock().expect("in a test") += 1;
                self.blobs.get(digest).map(|blob| (blob.clone(), "application/octet-stream"))
            }
            _ => None,
        };
        let (status, (body, kind)) = match body {
            Some(body) => ("200 OK", body),
            None => ("404 Not Found", (b"{}".to_vec(), "application/json")),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let _ = socket.write_all(head.as_bytes());
        if method == "GET" {
            let _ = socket.write_all(&body);
        }
    }

    fn take_asked(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().expect("in a test"))
    }
}

/// Pulls the image into a directory with the layout of containerd's blobs. As root, skopeo would
/// leave a cache behind in /var: it runs as nobody.
fn pull(from: &str, to: &Path, home: &Path) {
    let mut command = match is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "skopeo"]);
            command
        }
        false => Command::new("skopeo"),
    };
    command.args(["copy", "--quiet", "--insecure-policy", "--src-tls-verify=false"]);
    command.arg(format!("docker://{from}/{IMAGE}:1")).arg(format!("oci:{}:1", to.display()));
    command.env("HOME", home).env("TMPDIR", home).env("XDG_RUNTIME_DIR", home);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A directory that everybody may write to.
fn directory(path: PathBuf) -> PathBuf {
    std::fs::create_dir_all(&path).expect("in a test");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("in a test");
    path
}

/// A machine: its store, and its host as the recipe starts it.
struct Machine {
    _process: Process,
    store: PathBuf,
    http: String,
    resp: String,
    between: String,
}

fn machine(name: &str, folder: &Path, registry: &str, peer: Option<&str>) -> Machine {
    let store = directory(folder.join(name));
    let blobs = directory(store.join("blobs"));
    directory(blobs.join("sha256"));
    let [http, resp, between] = std::array::from_fn(|_| free());
    let recipe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/oci/mirror.sh");
    let mut script = Command::new(recipe);
    script.arg(name).arg(folder.join(format!("state-{name}"))).arg(&blobs);
    script.args([&http, &resp, &between, "--oci-origin", &format!("http://{registry}")]);
    script.args(peer.iter().flat_map(|peer| ["--peer", peer]));
    script.env("UMBEL", env!("CARGO_BIN_EXE_umbel")).stdout(Stdio::null()).stderr(Stdio::null());
    let process = Process(script.spawn().expect("in a test"));
    eventually("the host answers", || TcpStream::connect(&http).is_ok());
    Machine { _process: process, store, http, resp, between }
}

#[test]
fn a_pull_takes_blobs_from_a_machine_that_has_them() {
    if Command::new("skopeo").arg("-v").output().is_err() {
        eprintln!("SKIPPED: skopeo is not installed (Debian: skopeo)");
        return;
    }
    let folder = tempfile::tempdir().expect("in a test");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))
        .expect("in a test");
    let home = directory(folder.path().join("home"));
    let (registry, at) = Registry::open();
    for name in ["a", "b"] {
        pull(&at, &directory(folder.path().join(name)), &home);
    }
    let without = registry.take_asked();

    let one = machine("node-1", folder.path(), &at, None);
    let two = machine("node-2", folder.path(), &at, Some(&one.between));
    pull(&one.http, &one.store, &home);
    let blobs: Vec<&String> = registry.blobs.keys().collect();
    eventually("the second host knows what the first machine holds", || {
        let mut umbel = Command::new(env!("CARGO_BIN_EXE_umbel"));
        umbel.args(["who", "blobs", "--at", &two.resp]).args(&blobs);
        let printed = umbel.output().expect("it runs").stdout;
        String::from_utf8_lossy(&printed).matches("node-1").count() == blobs.len()
    });
    pull(&two.http, &two.store, &home);
    for blob in blobs {
        let file = two.store.join("blobs").join(blob.replace(':', "/"));
        assert_eq!(std::fs::read(file).expect("pulled"), registry.blobs[blob]);
    }
    let with = registry.take_asked();
    eprintln!("blobs that the registry was asked for: {without} without umbel, {with} with it");
    assert_eq!((without, with), (6, 3));
}

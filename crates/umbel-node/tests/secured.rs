//! Certificates: who is believed, who is not, and how they change while a host runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use umbel_node::{Host, LocalNetwork, tls};

/// An authority with its files in a folder.
struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).expect("in a test");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("in a test");
        let cert = params.self_signed(&key).expect("in a test").pem();
        std::fs::write(folder.join("ca.pem"), cert).expect("in a test");
        Self { folder: folder.to_owned(), issuer: Issuer::new(params, key) }
    }

    /// Writes a certificate for a name that holds until the end of a year.
    fn certify(&self, name: &str, until: i32) {
        let years = Duration::from_secs(31_556_952) * (until - 1969) as u32;
        self.certify_until(name, years);
    }

    /// Writes a certificate for a name that holds until this long after 1970.
    fn certify_until(&self, name: &str, until: Duration) {
        let names = vec![name.to_owned(), "localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("in a test");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(1970, 1, 1) + until;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("in a test");
        let cert = params.signed_by(&key, &self.issuer).expect("in a test").pem();
        std::fs::write(self.file(name, "pem"), cert).expect("in a test");
        std::fs::write(self.file(name, "key"), key.serialize_pem()).expect("in a test");
    }

    fn file(&self, name: &str, end: &str) -> String {
        self.folder.join(format!("{name}.{end}")).to_string_lossy().into_owned()
    }
}

const HOSTS: [&str; 6] = ["a", "b", "late", "foreign", "expired", "plain"];

fn builder(name: &str, peers: &[SocketAddr]) -> umbel_node::Builder {
    // Which of them is whom does not matter to a host that knows all names.
    let peers: Vec<String> = peers.iter().map(|peer| format!("a={peer}")).collect();
    Host::builder()
        .name(name)
        .listen("127.0.0.1:0".parse().expect("in a test"))
        .peers(&peers)
        .set("hosts", HOSTS)
}

/// A host that shows a certificate of this authority.
async fn secured(authority: &Authority, name: &str, peers: &[SocketAddr]) -> Host {
    let host = builder(name, peers)
        .set("peer_ca", [authority.file("ca", "pem")])
        .set("peer_cert", [authority.file(name, "pem")])
        .set("peer_key", [authority.file(name, "key")]);
    host.start().await.expect("in a test")
}

fn listens(host: &Host) -> SocketAddr {
    host.addresses().listen.expect("in a test")
}

async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within a minute: {what}");
}

async fn tells(host: &Host, key: &str) {
    host.add_key("s", key.as_bytes()).await.expect("in a test");
    host.publish("s").expect("in a test");
}

fn finds(host: &Host, key: &str) -> Vec<String> {
    host.who_has("s", key.as_bytes()).unwrap_or_default()
}

fn names(host: &Host) -> Vec<String> {
    host.hosts().into_iter().map(|host| host.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_authority_an_expired_certificate_and_plain_tcp_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(&folder.path().join("ours"));
    let other = Authority::new(&folder.path().join("theirs"));
    ["a", "b", "late"].iter().for_each(|name| authority.certify(name, 4000));
    authority.certify("expired", 2001);
    other.certify("foreign", 4000);
    let a = secured(&authority, "a", &[]).await;
    let b = secured(&authority, "b", &[listens(&a)]).await;
    tells(&a, "of-a").await;
    eventually("hosts with certificates find each other", || finds(&b, "of-a") == ["a"]).await;

    let both = [listens(&a), listens(&b)];
    let foreign = secured(&other, "foreign", &both).await;
    let expired = secured(&authority, "expired", &both).await;
    let plain = builder("plain", &both).start().await.unwrap();
    for (host, key) in [(&foreign, "of-foreign"), (&expired, "of-expired"), (&plain, "of-plain")] {
        tells(host, key).await;
    }
    // Somebody who comes later is heard: the others have had their chance.
    let late = secured(&authority, "late", &both).await;
    tells(&late, "of-late").await;
    eventually("a late host is heard", || {
        [&a, &b].iter().all(|host| finds(host, "of-late") == ["late"])
    })
    .await;
    for host in [&a, &b, &late] {
        let mut names = names(host);
        names.sort();
        assert_eq!(names, ["a", "b", "late"]);
        for key in ["of-foreign", "of-expired", "of-plain"] {
            assert_eq!(finds(host, key), [""; 0]);
        }
    }
    for host in [&foreign, &expired, &plain] {
        assert_eq!(names(host).len(), 1, "it hears nothing either");
        assert_eq!(finds(host, "of-a"), [""; 0]);
    }
    for host in [a, b, late, foreign, expired, plain] {
        host.stop().await;
    }
}

/// A certificate that expires while its host is connected: the link is closed, no other is opened,
/// and after the grace time the host is named no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_ends_with_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.certify("a", 4000);
    let a = secured(&authority, "a", &[]).await;
    let b = heard_before_its_certificate_expires(&authority, &a).await;
    eventually("it is heard no more afterwards", || finds(&a, "of-b").is_empty()).await;
    eventually("and is named no more", || names(&a) == ["a"]).await;
    b.stop().await;
    a.stop().await;
}

/// A host `b` whose certificate expires soon, which `a` has heard. On a busy machine a certificate may
/// expire before its host has started: then one that holds for longer is made.
async fn heard_before_its_certificate_expires(authority: &Authority, a: &Host) -> Host {
    let now =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    for seconds in [8, 16, 32, 64] {
        let until = now() + Duration::from_secs(seconds);
        authority.certify_until("b", until);
        let b = secured(authority, "b", &[listens(a)]).await;
        tells(&b, "of-b").await;
        while now() < until {
            if finds(a, "of-b") == ["b"] {
                return b;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        b.stop().await;
    }
    panic!("no certificate held for long enough");
}

/// A bare session with a host's certificate: what somebody would use who broke into it.
async fn session(authority: &Authority, name: &str, to: SocketAddr) -> zenoh::Session {
    let mut config = zenoh::Config::default();
    let tls = serde_json::json!({
        "root_ca_certificate": authority.file("ca", "pem"),
        "connect_certificate": authority.file(name, "pem"),
        "connect_private_key": authority.file(name, "key"),
        "enable_mtls": true,
        "verify_name_on_connect": false,
    });
    for (key, value) in [
        ("mode", "\"peer\"".to_owned()),
        ("listen/endpoints", "[]".to_owned()),
        ("connect/endpoints", format!("[\"tls/{to}\"]")),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("transport/link/tls", tls.to_string()),
    ] {
        config.insert_json5(key, &value).expect("in a test");
    }
    zenoh::open(config).await.expect("in a test")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_can_speak_under_its_own_name_only() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    ["a", "b", "stranger"].iter().for_each(|name| authority.certify(name, 4000));
    let a = secured(&authority, "a", &[]).await;
    tells(&a, "of-a").await;
    let session = session(&authority, "b", listens(&a)).await;
    // Everything that b says under its own name is heard, and all that came before it on the
    // same link under other names is not.
    let life = session.liveliness();
    for name in ["late", "*", "**", "b"] {
        let token = if name == "**" {
            "umbel/local/**".into()
        } else {
            format!("umbel/local/{name}/alive/7/1")
        };
        if let Ok(token) = life.declare_token(token).await {
            std::mem::forget(token);
        }
    }
    eventually("b is seen", || names(&a).contains(&"b".to_owned())).await;
    assert_eq!(names(&a), ["a", "b"]);

    let hello = r#"{"name":"late","cluster":"other","incarnation":1,"wire":1,"hash":"x"}"#;
    for key in ["umbel-hello/late", "umbel-hello/b", "umbel-hello/*"] {
        let _ = session.put(key, hello).await;
    }
    let refused = || a.status().refused;
    assert_eq!(refused(), 0);
    for key in [
        "umbel/local/late/updates",
        "umbel/local/*/updates",
        "umbel/local/**",
        "umbel/local/a/updates",
    ] {
        let _ = session.put(key, "junk").await;
    }
    while refused() == 0 {
        session.put("umbel/local/b/updates", "junk").await.unwrap();
        eventually("junk under the own name is refused by the protocol", || refused() > 0).await;
    }
    assert_eq!(refused(), 1, "no other junk came so far");
    assert!(names(&a).iter().all(|name| name != "late"));

    // Asking as oneself is answered, asking as another is not.
    let life_of_a = b"\x02\x01\0\0\0a".to_vec();
    let ask = async |from: &str| {
        let answers = session
            .get(format!("umbel/local/a/requests/{from}"))
            .payload(life_of_a.clone())
            .timeout(Duration::from_secs(2))
            .await
            .expect("in a test");
        let mut right = 0;
        while let Ok(answer) = answers.recv_async().await {
            right += usize::from(answer.result().is_ok());
        }
        right
    };
    assert_eq!((ask("late").await, ask("b").await), (0, 1));
    session.close().await.unwrap();

    // A certificate of the authority for a name that nobody told of is not enough.
    let stranger = self::session(&authority, "stranger", listens(&a)).await;
    let token = stranger.liveliness().declare_token("umbel/local/stranger/alive/7").await;
    let heard = stranger.get("umbel/local/a/requests/stranger").payload(life_of_a.clone());
    let heard = heard.timeout(Duration::from_secs(1)).await.unwrap();
    while let Ok(answer) = heard.recv_async().await {
        assert!(answer.result().is_err(), "a stranger is answered");
    }
    assert!(!names(&a).contains(&"stranger".to_owned()));
    drop(token);
    stranger.close().await.unwrap();
    a.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_needs_a_sound_certificate_of_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) =
        (Authority::new(&folder.path().join("1")), Authority::new(&folder.path().join("2")));
    ["a", "b"].iter().for_each(|name| one.certify(name, 4000));
    other.certify("a", 4000);
    let start = async |ca: &str, cert: &str, key: &str| {
        let host = builder("a", &[]).set("peer_ca", [ca]).set("peer_cert", [cert]);
        host.set("peer_key", [key]).start().await.map(drop).unwrap_err().to_string()
    };
    let (ca, cert, key) = (one.file("ca", "pem"), one.file("a", "pem"), one.file("a", "key"));
    let message = start(&ca, &one.file("b", "pem"), &one.file("b", "key")).await;
    assert!(message.contains("certificate of 'b', and this host is 'a'"), "{message}");
    assert!(start(&ca, &cert, &other.file("a", "key")).await.contains("a.pem: with its key"));
    assert!(start(&ca, &cert, "no/such").await.contains("no/such: "));
    assert!(start(&ca, &key, &key).await.contains("a.key: no certificate"));
    assert!(start(&key, &cert, &key).await.contains("a.key: no certificate"));
}

async fn reach(at: SocketAddr, authority: &Authority) -> std::io::Result<TlsStream<TcpStream>> {
    let config = tls::client_config(Path::new(&authority.file("ca", "pem"))).expect("in a test");
    let name = ServerName::try_from("localhost").expect("in a test");
    TlsConnector::from(config).connect(name, TcpStream::connect(at).await?).await
}

async fn pings(stream: &mut TlsStream<TcpStream>) -> bool {
    let mut reply = [0; 7];
    stream.write_all(b"PING\r\n").await.is_ok()
        && stream.read_exact(&mut reply).await.is_ok()
        && reply == *b"+PONG\r\n"
}

fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().expect("in a test")[0].to_vec()
}

/// A host whose ports have the certificate `clients` of this authority.
fn with_tls_ports(authority: &Authority) -> umbel_node::Builder {
    Host::builder()
        .name("a")
        .local(&LocalNetwork::new())
        .set("tls_cert", [authority.file("clients", "pem")])
        .set("tls_key", [authority.file("clients", "key")])
        .set("resp", ["127.0.0.1:0"])
        .set("http", ["127.0.0.1:0"])
}

/// Before, they kept their descriptors until the time for a request was over.
#[tokio::test(flavor = "multi_thread")]
async fn connections_that_begin_no_tls_make_room_on_both_ports() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    authority.certify("clients", 4000);
    let host = with_tls_ports(&authority)
        .set("limits.connections", ["2"])
        .set("limits.http_connections", ["2"])
        .set("timing.http_header", ["3600"])
        .set("timing.login", ["3600"])
        .with_ports();
    let host = host.start().await.unwrap();
    for at in [host.addresses().resp.unwrap(), host.addresses().http.unwrap()] {
        let mut silent = Vec::new();
        for _ in 0..6 {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        for socket in &mut silent[..4] {
            let mut byte = [0];
            let closed = tokio::time::timeout(Duration::from_secs(30), socket.read(&mut byte));
            assert!(matches!(closed.await, Ok(Ok(0) | Err(_))), "it is still open");
        }
    }
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_from_the_peers_file_is_a_name_of_the_port() {
    let folder = tempfile::tempdir().unwrap();
    let peers = folder.path().join("peers");
    std::fs::write(&peers, "b=cache.example:7447\n").unwrap();
    let host = Host::builder()
        .name("a")
        .listen("127.0.0.1:0".parse().unwrap())
        .set("memory", ["true"])
        .set("peers_file", [peers.to_str().unwrap()])
        .set("timing.reload", ["0.05"])
        .set("resp", ["off"])
        .set("http", ["127.0.0.1:0"])
        .with_ports();
    let host = host.start().await.unwrap();
    let at = host.addresses().http.unwrap();
    let status = async |name: &str| {
        let mut web = TcpStream::connect(at).await.unwrap();
        let request = format!("GET /v1/sets HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n");
        web.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        web.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    for name in ["b", "B:7441", "cache.example", "a"] {
        assert_eq!(status(name).await, "200", "{name}");
    }
    assert_eq!(status("c").await, "421");
    std::fs::write(&peers, "c=other.example:7447\n").unwrap();
    for _ in 0..600 {
        if status("c").await == "200" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!([status("c").await, status("cache.example").await], ["200", "421"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_speak_tls_and_certificates_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(&folder.path().join("ours"));
    let other = Authority::new(&folder.path().join("theirs"));
    authority.certify("clients", 4000);
    let host = with_tls_ports(&authority).set("timing.reload", ["0.05"]).with_ports();
    let host = host.start().await.unwrap();
    let (resp, http) = (host.addresses().resp.unwrap(), host.addresses().http.unwrap());
    let mut old = reach(resp, &authority).await.unwrap();
    assert!(pings(&mut old).await);
    let mut web = reach(http, &authority).await.unwrap();
    web.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let _ = web.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.0 200") && answer.ends_with("ok\n"), "{answer}");
    for at in [resp, http] {
        assert!(reach(at, &other).await.is_err(), "another authority did not sign it");
        let mut plain = TcpStream::connect(at).await.unwrap();
        plain.write_all(b"PING\r\nGET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"+") && !answer.starts_with(b"HTTP"), "{answer:?}");
    }

    // Half a change, or nonsense, changes nothing.
    let before = shown(&old);
    std::fs::write(authority.file("clients", "pem"), "nonsense").unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(shown(&reach(resp, &authority).await.unwrap()), before);
    authority.certify("clients", 4001);
    for at in [resp, http] {
        let mut changed = false;
        for _ in 0..600 {
            changed = shown(&reach(at, &authority).await.unwrap()) != before;
            if changed {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(changed, "the new certificate is shown");
    }
    assert!(pings(&mut old).await, "connections stay");
    let mut slow = Vec::new();
    for _ in 0..50 {
        slow.push(TcpStream::connect(resp).await.unwrap());
    }
    assert!(
        pings(&mut reach(resp, &authority).await.unwrap()).await,
        "who never begins harms nobody"
    );
    host.stop().await;
    drop(Arc::new(slow));
}

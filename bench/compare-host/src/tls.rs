//! What TLS costs: a host with it beside one without, asked the same; and redis-server the same
//! way, since `redis-benchmark` pays for its own side of TLS in every row. What the server itself
//! pays is its processor time.

use std::path::Path;

use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use umbel_node::Host;

use super::measure::{self, Load};
use super::servers::Rival;
use super::{ASKED, WRITTEN};

/// What throughput with TLS is to be, of that without.
const GOAL: f64 = 0.7;

/// Whoever is asked.
struct Server<'a> {
    /// Its port with TLS, with the authority to believe; and without.
    ways: [(u16, Option<&'a Path>); 2],
    process: u32,
}

/// What came out once.
struct Run {
    per_second: f64,
    /// Processor time that the server took for a request.
    processor_us: f64,
}

/// What is asked, and how many keys there are to choose from.
struct Row {
    command: &'static [&'static str],
    keys: u64,
    /// Whether redis-server is asked.
    rival: bool,
}

const ROWS: &[Row] = &[
    Row { command: &["UMBEL.WHO", "asked", "key:__rand_int__"], keys: ASKED, rival: false },
    Row { command: &["GET", "key:__rand_int__"], keys: ASKED, rival: true },
    Row { command: &["UMBEL.ADD", "written", "new:__rand_int__"], keys: WRITTEN, rival: false },
    Row { command: &["SET", "new:__rand_int__", "1"], keys: WRITTEN, rival: true },
];

/// Prints a table.
pub(super) fn compare(rounds: usize, requests: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    certify(folder.path())?;
    let ca = folder.path().join("ca.pem");
    let (_plain, plain) = runtime.block_on(host(None))?;
    let (_tls, tls) = runtime.block_on(host(Some(folder.path())))?;
    let (rival, redis) = redis(folder.path())?;
    let mine = Server { ways: [(tls, Some(&*ca)), (plain, None)], process: std::process::id() };
    let theirs =
        Server { ways: [(redis.0, Some(&*ca)), (redis.1, None)], process: rival.process() };
    let load = Load { connections: 1, pipeline: 64, requests: 20 * ASKED, keys: ASKED };
    for (port, ca) in mine.ways {
        measure::run(port, ca, &load, &["UMBEL.ADD", "asked", "key:__rand_int__"])?;
    }
    measure::run(redis.1, None, &load, &["SET", "key:__rand_int__", "1"])?;
    println!("median of {rounds} rounds: requests a second, and processor time of the server\n");
    println!(
        "{:<10} {:>5} {:>4} {:>9} {:>9} {:>6} {:>10} {:>9} {:>6}",
        "", "conns", "pipe", "TLS", "plain", "ratio", "server TLS", "plain", "ratio"
    );
    // Long enough that shaking hands fifty times is not what is measured.
    for (connections, pipeline, part) in [(1, 32, 3), (50, 32, 1), (1, 1, 30), (50, 1, 3)] {
        for row in ROWS {
            let load = Load { connections, pipeline, requests: requests / part, keys: row.keys };
            let server = if row.rival { &theirs } else { &mine };
            print(row, &load, &pairs(rounds, server, &load, row.command)?);
        }
    }
    Ok(())
}

/// One line of the table.
fn print(row: &Row, load: &Load, pairs: &[[Run; 2]]) {
    let of = |number: fn(&[Run; 2]) -> f64| measure::median(pairs.iter().map(number));
    let ratio = of(|[tls, plain]| tls.per_second / plain.per_second);
    let (tls_us, plain_us) = (of(|[tls, _]| tls.processor_us), of(|[_, plain]| plain.processor_us));
    let verdict = match row.rival {
        true => "  redis-server".to_owned(),
        false if ratio < GOAL => format!("  below {GOAL}"),
        false => String::new(),
    };
    println!(
        "{:<10} {:>5} {:>4} {:>9.0} {:>9.0} {ratio:>6.2} {tls_us:>7.2} us {plain_us:>6.2} us {:>6.2}{verdict}",
        row.command[0],
        load.connections,
        load.pipeline,
        of(|[tls, _]| tls.per_second),
        of(|[_, plain]| plain.per_second),
        plain_us / tls_us,
    );
}

/// A redis-server with the same certificate, and its ports with TLS and without.
fn redis(folder: &Path) -> anyhow::Result<(Rival, (u16, u16))> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let rival = Rival::start(&[
        "--appendonly",
        "no",
        "--tls-port",
        &port.to_string(),
        "--tls-auth-clients",
        "no",
        "--tls-cert-file",
        &file("host.pem"),
        "--tls-key-file",
        &file("host.key"),
        "--tls-ca-cert-file",
        &file("ca.pem"),
    ])?;
    let plain = rival.port;
    Ok((rival, (port, plain)))
}

/// Both ways in turn, the first one changing.
fn pairs(
    rounds: usize,
    server: &Server<'_>,
    load: &Load,
    command: &[&str],
) -> anyhow::Result<Vec<[Run; 2]>> {
    let run = |(port, ca)| {
        let before = measure::processor(server.process)?;
        let measured = measure::run(port, ca, load, command)?;
        let seconds = measure::processor(server.process)? - before;
        let processor_us = seconds * 1e6 / load.requests as f64;
        Ok::<Run, anyhow::Error>(Run { per_second: measured.per_second, processor_us })
    };
    let pair = |round| {
        let [tls, plain] = server.ways;
        Ok(if round % 2 == 0 {
            [run(tls)?, run(plain)?]
        } else {
            let plain = run(plain)?;
            [run(tls)?, plain]
        })
    };
    (0..rounds).map(pair).collect()
}

async fn host(folder: Option<&Path>) -> anyhow::Result<(Host, u16)> {
    let any = "127.0.0.1:0";
    let builder = Host::builder().name("compared").with_ports();
    let mut builder = builder.set("resp", [any]).set("http", [any]).set("listen", [any]);
    if let Some(folder) = folder {
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        builder = builder.set("tls_cert", [file("host.pem")]).set("tls_key", [file("host.key")]);
    }
    let host = builder.start().await?;
    let address = host.addresses().resp.context("the host has no port for Redis clients")?;
    Ok((host, address.port()))
}

/// An authority and a certificate for loopback.
fn certify(folder: &Path) -> anyhow::Result<()> {
    let mut authority = CertificateParams::default();
    // Unlike the host's: what has issued itself is believed by nobody.
    authority.distinguished_name.push(DnType::CommonName, "authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate()?;
    std::fs::write(folder.join("ca.pem"), authority.self_signed(&authority_key)?.pem())?;
    let issuer = Issuer::new(authority, authority_key);
    let (key, names) = (KeyPair::generate()?, vec!["127.0.0.1".to_owned()]);
    let cert = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    std::fs::write(folder.join("host.pem"), cert.pem())?;
    std::fs::write(folder.join("host.key"), key.serialize_pem())?;
    Ok(())
}

//! What TLS costs: a host with it beside one without, asked the same.

use std::path::Path;

use anyhow::Context;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use umbel_node::Host;

use super::measure::{self, Load, Measured};
use super::{ASKED, WRITTEN};

/// What throughput with TLS is to be, of that without.
const GOAL: f64 = 0.7;

/// What is asked, and how many keys there are to choose from.
const ROWS: &[(&[&str], u64)] = &[
    (&["UMBEL.WHO", "asked", "key:__rand_int__"], ASKED),
    (&["UMBEL.ADD", "written", "new:__rand_int__"], WRITTEN),
];

/// Prints a table.
pub(super) fn compare(rounds: usize, requests: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let folder = tempfile::tempdir()?;
    certify(folder.path())?;
    let ca = folder.path().join("ca.pem");
    let (_plain, plain) = runtime.block_on(host(None))?;
    let (_tls, tls) = runtime.block_on(host(Some(folder.path())))?;
    let ways = [(tls, Some(&*ca)), (plain, None)];
    for (port, ca) in ways {
        let load = Load { connections: 1, pipeline: 64, requests: 20 * ASKED, keys: ASKED };
        measure::run(port, ca, &load, &["UMBEL.ADD", "asked", "key:__rand_int__"])?;
    }
    println!("requests a second, median of {rounds} rounds\n");
    println!(
        "{:<12} {:>5} {:>4} {:>11} {:>11} {:>6}",
        "", "conns", "pipe", "TLS", "plain", "ratio"
    );
    for (connections, pipeline) in [(1, 32), (50, 32), (1, 1), (50, 1)] {
        let requests = if pipeline == 1 { requests / 10 } else { requests };
        for (command, keys) in ROWS {
            let load = Load { connections, pipeline, requests, keys: *keys };
            let pairs = pairs(rounds, ways, &load, command)?;
            let of = |number: fn(&[Measured; 2]) -> f64| measure::median(pairs.iter().map(number));
            let ratio = of(|[tls, plain]| tls.per_second / plain.per_second);
            let verdict = if ratio < GOAL { format!("  below {GOAL}") } else { String::new() };
            println!(
                "{:<12} {connections:>5} {pipeline:>4} {:>11.0} {:>11.0} {ratio:>6.2}{verdict}",
                command[0],
                of(|[tls, _]| tls.per_second),
                of(|[_, plain]| plain.per_second),
            );
        }
    }
    Ok(())
}

/// Both ways in turn, the first one changing.
fn pairs(
    rounds: usize,
    ways: [(u16, Option<&Path>); 2],
    load: &Load,
    command: &[&str],
) -> anyhow::Result<Vec<[Measured; 2]>> {
    let run = |(port, ca)| measure::run(port, ca, load, command);
    let pair = |round| {
        let [tls, plain] = ways;
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

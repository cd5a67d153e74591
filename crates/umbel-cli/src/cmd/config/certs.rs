//! `umbel config certs`: creates a private certificate authority, and a certificate per host.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use umbel_node::Settings;

use crate::lines::name;
use crate::output::print;

/// Create a certificate authority and a certificate for each host of a cluster
#[derive(Args)]
#[command(after_help = "\
Every host gets its own certificate, whose common name is the host's name; with it a host can use
its own name only. Keep ca.key somewhere safe: it is needed to add hosts, and whoever has it can
impersonate any host. A name may have addresses at which clients reach the host:
cache-1=10.0.0.1, or several: cache-1=10.0.0.1+cache-1.example.org.

Examples:
  umbel config certs --hosts cache-1,cache-2,cache-3 --out certs
  umbel config certs --hosts cache-1=10.0.0.1,cache-2=10.0.0.2 --out certs
  umbel config certs --add cache-4 --out certs")]
pub(super) struct Certs {
    /// Hosts of a new cluster, separated by commas; creates an authority too
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required_unless_present = "add",
          conflicts_with = "add", value_parser = HostName::parse)]
    hosts: Vec<HostName>,
    /// Hosts to add; the authority in the directory signs their certificates
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = HostName::parse)]
    add: Vec<HostName>,
    /// Make the certificates valid for localhost too, for clients on the hosts themselves; any host
    /// can then impersonate any other to those clients
    #[arg(long)]
    localhost: bool,
    /// Directory for the files
    #[arg(long, value_name = "DIR", default_value = "certs")]
    out: PathBuf,
    /// Days for which the hosts' certificates are valid
    #[arg(long, default_value_t = 730, value_parser = clap::value_parser!(u32).range(1..=36500))]
    days: u32,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// A host and perhaps the addresses where clients find it.
#[derive(Debug, Clone)]
struct HostName {
    name: String,
    addresses: Vec<String>,
}

impl HostName {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, addresses) = match text.split_once('=') {
            Some((name, addresses)) => (name, addresses.split('+').map(str::to_owned).collect()),
            None => (text, Vec::new()),
        };
        // Apply the rules for host names.
        Settings::in_memory(name).map_err(|error| error.to_string())?;
        if addresses.iter().any(String::is_empty) || name == "ca" {
            let range =
                "NAME, NAME=ADDRESS or NAME=ADDRESS+ADDRESS is needed, and 'ca' is the authority";
            return Err(range.to_owned());
        }
        Ok(Self { name: name.to_owned(), addresses })
    }
}

/// A certificate and its key, as files.
struct Made {
    name: String,
    cert: String,
    key: String,
}

/// Validity of the authority's certificate, in days.
const AUTHORITY_DAYS: u32 = 3650;

impl Certs {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let hosts = if self.add.is_empty() { &self.hosts } else { &self.add };
        let mut made = Vec::new();
        let authority = if self.add.is_empty() {
            let (authority, files) = new_authority()?;
            made.push(files);
            authority
        } else {
            self.read_authority()?
        };
        for host in hosts {
            made.push(certify(host, &authority, self)?);
        }
        self.write(&made)?;
        print(&if self.json { self.json(&made) } else { self.text(hosts) })?;
        Ok(ExitCode::SUCCESS)
    }

    fn read_authority(&self) -> anyhow::Result<Issuer<'static, KeyPair>> {
        let read = |file: &str| {
            let path = self.out.join(file);
            let hint = "--add needs the authority that --hosts made";
            std::fs::read_to_string(&path).with_context(|| format!("{}: {hint}", name(&path)))
        };
        let (cert, key) = (read("ca.pem")?, read("ca.key")?);
        let key = KeyPair::from_pem(&key).context("ca.key: it is no private key")?;
        Issuer::from_ca_cert_pem(&cert, key).context("ca.pem: it is no certificate")
    }

    /// Writes the files, and never overwrites an existing one.
    fn write(&self, made: &[Made]) -> anyhow::Result<()> {
        std::fs::create_dir_all(&self.out).with_context(|| name(&self.out))?;
        let path = |made: &Made, end: &str| self.out.join(format!("{}.{end}", made.name));
        for file in made.iter().flat_map(|made| [path(made, "pem"), path(made, "key")]) {
            ensure!(!file.exists(), "{}: it is there already, and is left as it is", name(&file));
        }
        for made in made {
            create(&path(made, "pem"), &made.cert, 0o644)?;
            create(&path(made, "key"), &made.key, 0o600)?;
        }
        Ok(())
    }

    fn json(&self, made: &[Made]) -> String {
        let files: Vec<_> = made
            .iter()
            .map(|made| {
                let path = |end| name(&self.out.join(format!("{}.{end}", made.name)));
                serde_json::json!({ "name": made.name, "cert": path("pem"), "key": path("key") })
            })
            .collect();
        format!("{}\n", serde_json::json!({ "made": files }))
    }

    fn text(&self, hosts: &[HostName]) -> String {
        let out = name(&self.out);
        let mut text = String::new();
        for HostName { name, .. } in hosts {
            text += &format!(
                "host {name}: copy {out}/ca.pem, {out}/{name}.pem and {out}/{name}.key there, and \
                 say in its configuration:\n  peer_ca = \"ca.pem\"\n  peer_cert = \
                 \"{name}.pem\"\n  peer_key = \"{name}.key\"\n"
            );
        }
        text +=
            "Every host must know the names of the others: in peers, hosts, or the peers_file.\n";
        text + &format!("Keep {out}/ca.key safe and off the hosts: it makes certificates.\n")
    }
}

fn create(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| name(path))
}

fn new_authority() -> anyhow::Result<(Issuer<'static, KeyPair>, Made)> {
    let mut params = dated("umbel authority", AUTHORITY_DAYS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let cert = params.self_signed(&key)?.pem();
    let files = Made { name: "ca".to_owned(), cert, key: key.serialize_pem() };
    Ok((Issuer::new(params, key), files))
}

fn certify(
    host: &HostName,
    authority: &Issuer<'_, KeyPair>,
    options: &Certs,
) -> anyhow::Result<Made> {
    let local: &[&str] = if options.localhost { &["localhost", "127.0.0.1", "::1"] } else { &[] };
    let local = local.iter().map(|name| (*name).to_owned());
    let names: Vec<String> =
        [host.name.clone()].into_iter().chain(host.addresses.clone()).chain(local).collect();
    let mut params = CertificateParams::new(names).with_context(|| host.name.clone())?;
    let dated = dated(&host.name, options.days)?;
    params.distinguished_name = dated.distinguished_name;
    (params.not_before, params.not_after) = (dated.not_before, dated.not_after);
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let cert = params.signed_by(&key, authority)?.pem();
    Ok(Made { name: host.name.clone(), cert, key: key.serialize_pem() })
}

/// Certificate parameters valid from yesterday, because clocks differ, for this many days.
fn dated(common_name: &str, days: u32) -> anyhow::Result<CertificateParams> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| {
        anyhow!("the clock of this machine says that it is before 1970: set it right")
    })?;
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(1970, 1, 1) + (now - DAY.min(now));
    params.not_after = date_time_ymd(1970, 1, 1) + (now + DAY * days);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params)
}

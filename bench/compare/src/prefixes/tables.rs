//! The tables that are measured: read from files, or made.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use umbel::prefix::{Ipv4Prefix, Ipv6Prefix};

use super::kinds;
use super::route::{Route, routes};

pub(crate) struct Tables {
    pub(crate) source: String,
    pub(crate) ipv4: Vec<Route<Ipv4Prefix>>,
    pub(crate) ipv6: Vec<Route<Ipv6Prefix>>,
}

/// The table that `--prefixes` names: a kind, else a file.
pub(crate) fn load(name: &str) -> Result<Tables, String> {
    if let Some(make) = kinds::KINDS.iter().find(|(kind, _)| *kind == name).map(|(_, make)| make) {
        let (ipv4, ipv6) = make();
        return Ok(Tables {
            source: format!("made, {name}"),
            ipv4: routes(ipv4),
            ipv6: routes(ipv6),
        });
    }
    read(Path::new(name)).map_err(|error| format!("{name}: {error}"))
}

fn read(path: &Path) -> Result<Tables, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let plain: Box<dyn Read> =
        if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
    for line in BufReader::new(plain).lines() {
        let line = line.map_err(|error| error.to_string())?;
        match line.parse() {
            Ok(prefix) => ipv4.push(prefix),
            Err(_) => ipv6.push(line.parse().map_err(|_| format!("'{line}' is no prefix"))?),
        }
    }
    Ok(Tables { source: path.display().to_string(), ipv4: routes(ipv4), ipv6: routes(ipv6) })
}

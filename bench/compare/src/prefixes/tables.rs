//! The routing table: read from a file, or made like a real one.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use umbel::prefix::{Ipv4Prefix, Ipv6Prefix, Prefix};

use crate::harness::Mix;

/// A prefix and its next hop.
#[derive(Debug, Clone)]
pub(crate) struct Route<P> {
    pub(crate) prefix: P,
    pub(crate) value: u16,
}

pub(crate) struct Tables {
    pub(crate) source: String,
    pub(crate) ipv4: Vec<Route<Ipv4Prefix>>,
    pub(crate) ipv6: Vec<Route<Ipv6Prefix>>,
}

/// Next hops, none of them 0, which means "no route" here.
const HOPS: u64 = 1000;

/// The file that was named, the one beside the repository, or a made table.
pub(crate) fn load() -> Tables {
    let named = std::env::args().skip_while(|argument| argument != "--prefixes").nth(1);
    let beside = || Some(PathBuf::from("../shared/data/prefixes.txt.gz")).filter(|p| p.exists());
    match named.map(PathBuf::from).or_else(beside) {
        Some(path) => read(&path).unwrap_or_else(|error| {
            eprintln!("compare: {}: {error}", path.display());
            std::process::exit(2);
        }),
        None => made(),
    }
}

fn read(path: &Path) -> Result<Tables, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let plain: Box<dyn Read> =
        if zipped { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut tables = Tables { source: path.display().to_string(), ipv4: vec![], ipv6: vec![] };
    for (line, random) in BufReader::new(plain).lines().zip(Mix(3)) {
        let line = line.map_err(|error| error.to_string())?;
        let value = (random % HOPS + 1) as u16;
        if let Ok(prefix) = line.parse() {
            tables.ipv4.push(Route { prefix, value });
        } else {
            let prefix = line.parse().map_err(|_| format!("'{line}' is no prefix"))?;
            tables.ipv6.push(Route { prefix, value });
        }
    }
    shuffle(&mut tables.ipv4);
    shuffle(&mut tables.ipv6);
    Ok(tables)
}

fn shuffle<T>(items: &mut [T]) {
    for (last, random) in (1..items.len()).rev().zip(Mix(8)) {
        items.swap(last, (random % (last as u64 + 1)) as usize);
    }
}

/// Prefixes of each length in a full table of 2024.
const IPV4: [(u8, usize); 25] = [
    (8, 16),
    (9, 13),
    (10, 38),
    (11, 103),
    (12, 299),
    (13, 581),
    (14, 1203),
    (15, 2100),
    (16, 13490),
    (17, 8235),
    (18, 13798),
    (19, 24870),
    (20, 42611),
    (21, 50750),
    (22, 108_623),
    (23, 96510),
    (24, 537_698),
    (25, 20),
    (26, 3),
    (27, 11),
    (28, 18),
    (29, 17),
    (30, 3),
    (31, 3),
    (32, 886),
];
const IPV6: [(u8, usize); 39] = [
    (16, 1),
    (19, 1),
    (20, 16),
    (21, 3),
    (22, 7),
    (23, 8),
    (24, 30),
    (25, 8),
    (26, 15),
    (27, 20),
    (28, 193),
    (29, 4371),
    (30, 650),
    (31, 284),
    (32, 22548),
    (33, 2926),
    (34, 2603),
    (35, 1043),
    (36, 5996),
    (37, 880),
    (38, 1617),
    (39, 1377),
    (40, 13418),
    (41, 903),
    (42, 2301),
    (43, 1001),
    (44, 14365),
    (45, 1553),
    (46, 3039),
    (47, 3153),
    (48, 75488),
    (49, 11),
    (52, 1),
    (56, 24),
    (58, 20),
    (64, 184),
    (112, 2),
    (127, 42),
    (128, 6),
];

fn made() -> Tables {
    let ipv4 = grown(&IPV4, 0, |bits, length| {
        Ipv4Prefix::of(&Ipv4Addr::from((bits >> 96) as u32), length)
    });
    // All of today's addresses begin with 001.
    let ipv6 = grown(&IPV6, 1 << 125, |bits, length| Ipv6Prefix::of(&Ipv6Addr::from(bits), length));
    Tables { source: "made, with the lengths of a full table".to_owned(), ipv4, ipv6 }
}

/// Prefixes of each length: three in four below a shorter one, as real ones are.
fn grown<P: Prefix>(
    lengths: &[(u8, usize)],
    family: u128,
    prefix: impl Fn(u128, u8) -> P,
) -> Vec<Route<P>> {
    let mut random = Mix(5);
    let mut next = || random.next().expect("it never ends");
    let (mut bits, mut seen, mut routes) = (Vec::new(), std::collections::BTreeSet::new(), vec![]);
    for (length, count) in lengths {
        let shorter = bits.len() as u64;
        let whole = routes.len() + count;
        while routes.len() < whole {
            let fresh = u128::from(next()) << 64 | u128::from(next());
            let (base, kept): (u128, u8) = if shorter > 0 && next() % 4 > 0 {
                bits[(next() % shorter) as usize]
            } else if family > 0 {
                (family, 3)
            } else {
                (0, 0)
            };
            let new = base | fresh & (u128::MAX >> kept);
            let new = new & !(u128::MAX.checked_shr((*length).into()).unwrap_or(0));
            if seen.insert((*length, new)) {
                bits.push((new, *length));
                routes.push(Route {
                    prefix: prefix(new, *length),
                    value: (next() % HOPS + 1) as u16,
                });
            }
        }
    }
    shuffle(&mut routes);
    routes
}

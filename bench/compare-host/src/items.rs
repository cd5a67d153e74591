//! What an item of a filter takes at a host, in memory and on disk, beside what Redis documents for its own.
//!
//! Each measurement starts a process of its own (this program with `--item-bytes`): memory that one leaves
//! behind is none of the next one's.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::servers::host;

/// What is measured: a name, and a command that adds items.
const KINDS: [(&str, &[&str]); 2] = [
    ("Bloom filter", &["BF.INSERT", "f", "ERROR", "0.01", "ITEMS"]),
    ("cuckoo filter", &["CF.INSERT", "f", "CAPACITY", "1073741824", "ITEMS"]),
];
/// Items of a request.
const BATCH: u64 = 1000;

/// Measures all kinds, in memory and in a folder.
pub(crate) fn compare(items: u64) -> anyhow::Result<()> {
    println!("bytes an item of 16 bytes, of {items} items\n");
    println!("{:<28} {:>10} {:>10} {:>10}", "", "process", "filter", "disk");
    let program = std::env::current_exe()?;
    for (place, (name, _)) in KINDS.iter().enumerate() {
        for durable in [false, true] {
            let mut measured = Command::new(&program);
            measured.args(["--item-bytes", &place.to_string(), &durable.to_string()]);
            let output = measured.arg(items.to_string()).output()?;
            if !output.status.success() {
                bail!("{}", String::from_utf8_lossy(&output.stderr));
            }
            let kept = if durable { "in a folder" } else { "in memory" };
            let name = format!("{name}, {kept}");
            print!("{name:<28} {}", String::from_utf8_lossy(&output.stdout));
        }
    }
    // redis.io, "Bloom filter" and "Cuckoo filter".
    println!("RedisBloom documents 9.585 bits (1.20 bytes) an item of a Bloom filter at 1 %,");
    println!("and 1 byte a place of a cuckoo filter, of which 55 to 95 % are filled.");
    Ok(())
}

/// One of the measurements: the arguments that [`compare`] gave.
pub(crate) fn measure(arguments: &[String]) -> anyhow::Result<()> {
    let [kind, durable, items] = arguments else {
        bail!("--item-bytes is for this program itself")
    };
    let (_, command) = KINDS.get(kind.parse::<usize>()?).context("a kind")?;
    let (durable, items): (bool, u64) = (durable.parse()?, items.parse()?);
    let (runtime, folder) = (tokio::runtime::Runtime::new()?, tempfile::tempdir()?);
    let (_host, port) = runtime.block_on(host(durable.then(|| folder.path())))?;
    let before = resident_bytes()?;
    fill(port, command, items)?;
    let per_item = |bytes: u64| bytes as f64 / items as f64;
    let process = per_item(resident_bytes()?.saturating_sub(before));
    let filter = per_item(filter_bytes(port, command[0])?);
    let disk = per_item(disk_bytes(folder.path())?);
    println!("{process:>10.1} {filter:>10.1} {disk:>10.1}");
    Ok(())
}

fn fill(port: u16, command: &[&str], items: u64) -> anyhow::Result<()> {
    for first in (0..items).step_by(BATCH as usize) {
        let names = (first..items.min(first + BATCH)).map(|item| format!("item:{item:011}"));
        let words = command.iter().map(ToString::to_string).chain(names);
        let reply = ask(port, &words.collect::<Vec<_>>())?;
        if reply.contains('-') {
            bail!("the host refuses an item: {reply}");
        }
    }
    Ok(())
}

/// The reply to one command.
fn ask(port: u16, words: &[String]) -> anyhow::Result<String> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let mut request = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
    socket.write_all(request.as_bytes())?;
    socket.shutdown(std::net::Shutdown::Write)?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply)?;
    Ok(reply)
}

/// What `INFO` of the filter says of its size.
fn filter_bytes(port: u16, command: &str) -> anyhow::Result<u64> {
    let info = command.replace("INSERT", "INFO");
    let reply = ask(port, &[info, String::from("f")])?;
    let (_, size) = reply.split_once("+Size\r\n:").context("a size")?;
    Ok(size.split("\r\n").next().unwrap_or_default().parse()?)
}

/// Memory of this process that is in use.
fn resident_bytes() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn disk_bytes(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        bytes += if about.is_dir() { disk_bytes(&entry.path())? } else { about.len() };
    }
    Ok(bytes)
}

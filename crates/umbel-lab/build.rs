//! Collects what the header of every experiment's module says, for the report: the paper's
//! claim, our parameters, what is left open. So it is written once, where the code is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src/tables");
    let mut headers = Vec::new();
    collect(Path::new("src/tables"), &mut headers)?;
    headers.sort();
    let mut code = String::from("&[\n");
    for (name, header) in &headers {
        // Writing into a string never fails.
        _ = writeln!(code, "    ({name:?}, {header:?}),");
    }
    code.push_str("]\n");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("headers.rs"), code)
}

/// The name of every experiment under a directory, with the header of its module.
fn collect(directory: &Path, headers: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, headers)?;
            continue;
        }
        let source = fs::read_to_string(&path)?;
        // A module may hold several experiments.
        for (start, field) in source.match_indices("name: \"") {
            if let Some((name, _)) = source[start + field.len()..].split_once('"') {
                headers.push((name.to_owned(), header(&source)));
            }
        }
    }
    Ok(())
}

/// The lines of the module's documentation, as Markdown.
fn header(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

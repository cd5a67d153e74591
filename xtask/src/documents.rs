//! Checks links between the documents: each must point to a file, and to a heading if it names one.
//!
//! External links are not checked: CI must not depend on other machines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Checks the links of all documents.
///
/// # Errors
/// Names every broken link.
pub(crate) fn check() -> Result<(), String> {
    let mut broken = Vec::new();
    for document in documents()? {
        let text = read(&document)?;
        broken.extend(links(&text).iter().filter_map(|link| {
            let why = wrong(&document, link).err()?;
            Some(format!("{}: ({link}): {why}", document.display()))
        }));
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(format!("links that lead nowhere:\n{}", broken.join("\n"))),
    }
}

/// All documents below this directory, without what was built or installed there.
fn documents() -> Result<BTreeSet<PathBuf>, String> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![PathBuf::from(".")]);
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.filter_map(Result::ok) {
            let (path, name) = (entry.path(), entry.file_name());
            let is_made = name == "target" || name.as_encoded_bytes().starts_with(b".");
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_made {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Checks one link of a document; the error says what is wrong with it.
fn wrong(document: &Path, link: &str) -> Result<(), String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => document.to_owned(),
        path => document.parent().unwrap_or(Path::new(".")).join(path),
    };
    if !target.exists() {
        return Err("no such file".to_owned());
    }
    if !heading.is_empty() && !headings(&read(&target)?).contains(heading) {
        return Err("no such heading".to_owned());
    }
    Ok(())
}

/// The targets of inline links, without external ones.
fn links(text: &str) -> Vec<&str> {
    let prose = outside_of_code(text);
    let targets = prose.flat_map(|line| line.split("](").skip(1));
    let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:")).collect()
}

/// Headings as they appear in links: in lower case, with hyphens for spaces.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = outside_of_code(text).filter(|line| line.starts_with('#'));
    titles.map(|line| slug(line.trim_start_matches('#').trim())).collect()
}

fn slug(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// The lines that are not in fenced blocks.
fn outside_of_code(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_prose_are_found_and_those_in_code_are_not() {
        let text = "a [b](c.md#d) and [e](https://f) and ![g](h.svg)\n```\n[x](y.md)\n```\n[i](#j)";
        assert_eq!(links(text), ["c.md#d", "h.svg", "#j"]);
    }

    #[test]
    fn headings_are_named_as_pages_name_them() {
        let text = "# One key's journey\n```\n# no heading\n```\n### `umbel-node`: the host";
        let expected = ["one-keys-journey", "umbel-node-the-host"].map(String::from);
        assert_eq!(headings(text), BTreeSet::from(expected));
        assert_eq!(slug("What 1 % means"), "what-1--means");
    }

    #[test]
    fn a_link_must_lead_to_a_file_and_a_heading() {
        let folder = std::env::temp_dir().join(format!("umbel-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let document = folder.join("a.md");
        std::fs::write(&document, "# Here\n[x](#here)").expect("written");
        assert_eq!(wrong(&document, "#here"), Ok(()));
        assert_eq!(wrong(&document, "a.md#here"), Ok(()));
        assert_eq!(wrong(&document, "a.md#there"), Err("no such heading".to_owned()));
        assert_eq!(wrong(&document, "b.md"), Err("no such file".to_owned()));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}

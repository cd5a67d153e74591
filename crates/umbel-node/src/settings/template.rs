//! The commented file that `umbel config init` writes.

use super::{KEYS, Key, Kind, WATCH_KEYS};

/// A file with every key, its default and its purpose. Only keys that a host requires are set; the
/// rest are comments.
#[must_use]
pub fn template(name: &str, data: &str) -> String {
    let mut text = String::from(
        "# Configuration of an umbel host. What stands here is overruled by the environment\n\
         # (UMBEL_CLUSTER, UMBEL_SET_CAPACITY, ...), and that by flags (--cluster, ...).\n\
         # `umbel config check FILE` finds mistakes, `umbel config show` tells what holds.\n",
    );
    let mut section = "";
    for key in KEYS {
        let (here, last) = key.name.split_once('.').unwrap_or(("", key.name));
        if here != section {
            section = here;
            text.push_str(&format!("\n[{section}]\n"));
        }
        let given = match key.name {
            "name" => Some(name),
            "data" => Some(data),
            _ => None,
        };
        let comment = if given.is_some() { "" } else { "#" };
        let value = given.or(key.default).unwrap_or(key.example);
        text.push_str(&format!("\n# {}\n{comment}{last} = {}\n", key.what, literal(key, value)));
    }
    text.push_str(
        "\n# A directory whose files are the keys of a set; may be repeated.\n#[[watch]]\n",
    );
    for key in WATCH_KEYS {
        let last = key.name.trim_start_matches("watch.");
        let value = key.default.unwrap_or(key.example);
        text.push_str(&format!("\n# {}\n#{last} = {}\n", key.what, literal(key, value)));
    }
    text
}

/// A value in TOML syntax.
fn literal(key: &Key, value: &str) -> String {
    let quoted = toml::Value::String(value.to_owned()).to_string();
    let bare = value.parse::<f64>().is_ok() && key.default.is_some();
    match key.kind {
        Kind::Many => format!("[{quoted}]"),
        Kind::Switch => value.to_owned(),
        _ if bare => value.to_owned(),
        _ => quoted,
    }
}

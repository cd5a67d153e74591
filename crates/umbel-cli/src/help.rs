//! `umbel --help`: commands, grouped by task.
//!
//! Always true: every command is in exactly one group. A test checks it.

use clap::Command;

/// Headings, and the commands below each.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Hosts",
        &[
            "demo", "serve", "config", "doctor", "hosts", "sets", "info", "leave", "backup",
            "restore",
        ],
    ),
    (
        "Keys and sets of a host",
        &[
            "add", "remove", "sync", "watch", "keys", "has", "who", "chain", "locate", "missing",
            "reserve", "policy", "publish", "delete",
        ],
    ),
    ("Inference engines", &["kv"]),
    ("Names", &["announce", "withdraw", "match"]),
    ("Files", &["filter", "prefix", "store"]),
    ("Planning", &["plan", "model"]),
    ("Papers", &["lab"]),
    ("Shell", &["completions", "man", "help"]),
];

/// The command with its subcommands listed in groups.
pub(crate) fn with_groups(command: Command) -> Command {
    let listing: String = GROUPS.iter().map(|group| section(&command, group)).collect();
    command.help_template(format!(
        "{{about}}\n\n{{usage-heading}} {{usage}}\n\n{listing}Options:\n{{options}}{{after-help}}"
    ))
}

fn section(command: &Command, (heading, names): &(&str, &[&str])) -> String {
    let line = |name: &&str| {
        let found = command.get_subcommands().find(|below| below.get_name() == *name);
        let about = found.and_then(Command::get_about).map(ToString::to_string);
        // The parser adds `help` itself.
        let about =
            about.unwrap_or_else(|| "Print this message or the help of a command".to_owned());
        format!("  {name:<12} {about}\n")
    };
    format!("{heading}:\n{}\n", names.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = crate::command();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let all: BTreeSet<&str> =
            command.get_subcommands().map(Command::get_name).chain(["help"]).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), all);
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed.len(), GROUPS.iter().map(|(_, names)| names.len()).sum::<usize>());
    }

    #[test]
    fn help_lists_each_command_with_what_it_does() {
        let help = crate::command().render_help().to_string();
        for command in crate::command().get_subcommands() {
            let about = command.get_about().expect("every command says what it does").to_string();
            assert!(help.contains(&about), "{about}");
        }
        assert!(help.contains("Planning:") && help.contains("Usage: umbel"), "{help}");
    }
}

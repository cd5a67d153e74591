//! The help of every command: what it is for, and an example to start from.

use assert_cmd::cargo::cargo_bin_cmd;

fn help(command: &[String]) -> String {
    let output = cargo_bin_cmd!("umbel").args(command).arg("--help").output().expect("it runs");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("help is text")
}

/// The subcommands that a help text lists: the first one has them under several headings.
fn listed(help: &str, is_first: bool) -> Vec<String> {
    let list: Vec<&str> = match is_first {
        true => {
            let list = help.lines().skip_while(|line| *line != "Hosts:");
            list.take_while(|line| *line != "Options:").collect()
        }
        false => {
            let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
            list.take_while(|line| !line.is_empty()).collect()
        }
    };
    // Longer descriptions go on in lines that are indented further.
    let names =
        list.into_iter().filter_map(|line| line.strip_prefix("  ")).filter(|l| !l.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_help_with_an_example() {
    let mut open = vec![Vec::new()];
    let (mut seen, mut without) = (0, Vec::new());
    while let Some(command) = open.pop() {
        let text = help(&command);
        let line = [&["umbel".to_owned()], &command[..]].concat().join(" ");
        let (_, example) = text.split_once("Example").unwrap_or_default();
        if !example.contains(&line) {
            without.push(line);
        }
        open.extend(
            listed(&text, command.is_empty())
                .into_iter()
                .map(|name| [&command[..], &[name]].concat()),
        );
        seen += 1;
    }
    assert_eq!(without, [""; 0], "these have no example of their own");
    assert!(seen > 60, "{seen} commands");
}

use super::*;

/// All commands, parents before their children.
fn all() -> impl Iterator<Item = &'static Command> {
    every().flat_map(|command| std::iter::once(command).chain(command.children()))
}

#[test]
fn the_table_is_sorted_and_every_command_is_found_in_any_case() {
    for table in [table::TABLE, filters::TABLE] {
        assert!(table.is_sorted_by(|one, next| one.name < next.name));
    }
    for command in every() {
        assert_eq!(find(command.name.as_bytes()).unwrap().name, command.name);
        let lower = command.name.to_ascii_lowercase();
        assert_eq!(find(lower.as_bytes()).unwrap().name, command.name);
    }
    assert!(find(b"").is_none() && find(b"UMBEL").is_none() && find(b"UMBEL.WHOM").is_none());
}

#[test]
fn every_command_says_what_it_needs() {
    assert!(needs::NEEDS.is_sorted_by(|one, next| one.0 < next.0));
    let name = |command: &Command| match command.parent {
        Some(parent) => format!("{parent} {}", command.name),
        None => command.name.to_owned(),
    };
    let mut listed: Vec<String> = all().map(name).collect();
    listed.sort();
    assert!(listed.iter().eq(needs::NEEDS.iter().map(|(name, _)| name)), "{listed:?}");
    for command in all() {
        let expected = needs::NEEDS.iter().find(|(needed, _)| *needed == name(command)).unwrap();
        assert_eq!(command.need(), expected.1, "{}", name(command));
    }
}

#[test]
fn children_know_their_parents() {
    for command in every() {
        assert_eq!(command.parent, None);
        assert!(command.children().iter().all(|child| child.parent == Some(command.name)));
    }
}

#[test]
fn the_number_of_arguments_follows_from_them() {
    let arity = |name: &str| find(name.as_bytes()).unwrap().arity();
    let accepted = |name: &str| {
        (0..12).filter(|words| find(name.as_bytes()).unwrap().accepts(*words)).collect::<Vec<_>>()
    };
    assert_eq!((arity("ECHO"), arity("UMBEL.ADD"), arity("PING")), (2, -3, -1));
    assert_eq!((arity("UMBEL.ADDEX"), arity("COMMAND"), arity("CLIENT")), (-4, -1, -2));
    assert_eq!(accepted("ECHO"), [2]);
    assert_eq!(accepted("PING"), [1, 2]);
    assert_eq!(accepted("UMBEL.LOCATE"), [3, 4, 5, 6, 7, 8]);
    assert_eq!(accepted("UMBEL.MATCH"), [3, 4, 5]);
    assert_eq!(accepted("UMBEL.ADD"), (3..12).collect::<Vec<_>>());
    assert_eq!(accepted("BF.ADD"), [3]);
    assert_eq!(accepted("BF.RESERVE"), [4, 5, 6, 7]);
    assert_eq!((arity("BF.INSERT"), arity("CF.RESERVE"), arity("FLUSHALL")), (-4, -3, -1));
    assert_eq!(accepted("HELLO"), (1..8).collect::<Vec<_>>());
}

#[test]
fn a_match_waits_for_others_only_if_it_is_to_be_confirmed() {
    let slow = |name: &str| {
        (0..8).filter(|words| find(name.as_bytes()).unwrap().is_slow(*words)).collect::<Vec<_>>()
    };
    assert_eq!(slow("UMBEL.MATCH"), [4, 5]);
    assert_eq!(slow("UMBEL.LOCATE"), [3, 4, 5, 6, 7]);
    assert_eq!(slow("UMBEL.WHO"), [0; 0]);
}

#[test]
fn syntax_reads_as_people_write_it() {
    let syntax = |name: &str| find(name.as_bytes()).unwrap().syntax();
    assert_eq!(syntax("UMBEL.ADD"), "UMBEL.ADD set key [key ...]");
    assert_eq!(
        syntax("UMBEL.LOCATE"),
        "UMBEL.LOCATE set key [TIMEOUT milliseconds] [HOPS hops] [WITHPATH]"
    );
    assert_eq!(
        syntax("CF.INSERT"),
        "CF.INSERT key [CAPACITY capacity] [NOCREATE] ITEMS item [item ...]"
    );
    assert_eq!(syntax("INFO"), "INFO [section [section ...]]");
    assert_eq!(syntax("HELLO"), "HELLO [protover] [AUTH username password] [SETNAME clientname]");
}

#[test]
fn arguments_that_cost_more_than_their_bytes_are_few() {
    for (name, child) in [("COMMAND", "DOCS"), ("COMMAND", "INFO"), ("CONFIG", "GET")] {
        let parent = find(name.as_bytes()).unwrap();
        let child = parent.children().iter().find(|own| own.name == child).unwrap();
        assert!(child.accepts(2 + 128) && !child.accepts(2 + 129), "{}", child.syntax());
    }
    let info = find(b"INFO").unwrap();
    assert!(info.accepts(1 + 128) && !info.accepts(1 + 129));
}

#[test]
fn every_commands_worst_case_is_documented() {
    let document = include_str!("../../../../../docs/resp.md");
    let (_, table) = document.split_once("## Worst cases\n").expect("a section");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let mut expected = Vec::new();
    for command in all().filter(|command| command.children().is_empty()) {
        let name = command.full_name().replace('|', " ").to_ascii_uppercase();
        expected.push(format!("| `{name}` | {} | {} |", command.complexity, command.bound));
    }
    assert_eq!(rows, expected);
}

#[test]
fn every_command_is_documented() {
    let document = include_str!("../../../../../docs/resp.md");
    for command in all() {
        if command.children().is_empty() {
            let heading = format!("### `{}`\n", command.syntax());
            assert!(document.contains(&heading), "docs/resp.md lacks the line {heading}");
        }
        assert!(command.summary.ends_with('.'), "{}", command.syntax());
    }
}

/// A bug: a command that took long on the only worker blocked all other clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_tasks_run_while_work_is_done_off_the_workers() {
    let (send, receive) = std::sync::mpsc::channel();
    let limit = std::time::Duration::from_secs(30);
    let long = tokio::spawn(async move {
        // This task waits for this worker.
        tokio::spawn(async move { send.send("done") });
        off_the_workers(|| receive.recv_timeout(limit))
    });
    assert_eq!(long.await.unwrap(), Ok("done"), "the other task ran meanwhile");
}

//! `INFO` and `CONFIG GET`: what Redis clients and their dashboards request from every server.

use std::fmt::Write;

use super::{excerpt, glob, off_the_workers};
use crate::Value;
use crate::resp::context::{Context, Refusal};
use crate::resp::database::Database;
use crate::resp::request::Arguments;

/// The Redis version that this server claims: clients check it to decide which commands to send.
const REDIS_VERSION: &str = "7.0.0";

/// A section of `INFO`: its name, and the function that writes its lines.
type Section = (&'static str, fn(&Context<'_>, &mut String));

const SECTIONS: &[Section] = &[
    ("Server", server),
    ("Clients", clients),
    ("Stats", stats),
    ("Modules", modules),
    ("Cluster", cluster),
    ("Umbel", umbel),
    ("Keyspace", keyspace),
];

pub(super) fn info(context: &mut Context<'_>, arguments: Arguments<'_, '_>) -> Result<(), Refusal> {
    let asked: Vec<String> =
        arguments.from(1).map(|name| excerpt(name).to_ascii_lowercase()).collect();
    let everything = ["all", "default", "everything"];
    let all = asked.is_empty() || asked.iter().any(|name| everything.contains(&&**name));
    let mut text = String::new();
    for (name, write) in SECTIONS {
        if all || asked.iter().any(|asked| asked.eq_ignore_ascii_case(name)) {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            text += &format!("{gap}# {name}\r\n");
            write(context, &mut text);
        }
    }
    context.replies.verbatim(&text);
    Ok(())
}

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    write!(text, "{name}:{value}\r\n").expect("memory takes what is written");
}

fn server(context: &Context<'_>, text: &mut String) {
    let uptime = context.clients.since.elapsed().as_secs();
    line(text, "server_name", "umbel");
    line(text, "umbel_version", env!("CARGO_PKG_VERSION"));
    line(text, "umbel_build", crate::build_info::text());
    line(text, "redis_version", REDIS_VERSION);
    line(text, "redis_mode", "standalone");
    line(text, "arch_bits", usize::BITS);
    line(text, "process_id", std::process::id());
    line(text, "tcp_port", context.clients.local.port());
    line(text, "uptime_in_seconds", uptime);
    line(text, "uptime_in_days", uptime / (24 * 60 * 60));
}

fn clients(context: &Context<'_>, text: &mut String) {
    line(text, "connected_clients", context.clients.list().len());
    line(text, "maxclients", context.clients.limits.connections);
}

fn stats(context: &Context<'_>, text: &mut String) {
    let [accepted, refused, evicted, commands] = context.clients.totals();
    line(text, "total_connections_received", accepted);
    line(text, "total_commands_processed", commands + context.commands);
    line(text, "rejected_connections", refused);
    line(text, "evicted_clients", evicted);
}

/// The module that clients of RedisBloom look for: the commands here are those of this version.
fn modules(_: &Context<'_>, text: &mut String) {
    let bloom = "name=bf,ver=20807,api=1,filters=0,usedby=[],using=[],options=[]";
    line(text, "module", bloom);
}

fn cluster(_: &Context<'_>, text: &mut String) {
    line(text, "cluster_enabled", 0);
}

fn umbel(context: &Context<'_>, text: &mut String) {
    for (name, value) in off_the_workers(|| context.host.status()).fields() {
        line(text, name, plain(&value));
    }
}

fn keyspace(context: &Context<'_>, text: &mut String) {
    let mut sets = [0_usize; Database::COUNT as usize];
    for set in off_the_workers(|| context.host.sets()) {
        let (database, _) = Database::key_of(&set);
        sets[usize::from(database.number())] += 1;
    }
    for (number, sets) in sets.into_iter().enumerate().filter(|(_, sets)| *sets > 0) {
        line(text, &format!("db{number}"), format_args!("keys={sets},expires=0,avg_ttl=0"));
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.replace(['\r', '\n'], " "),
        Value::Whole(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Flag(flag) => u8::from(*flag).to_string(),
        Value::Nothing => String::new(),
        Value::List(values) => values.iter().map(plain).collect::<Vec<_>>().join(","),
    }
}

pub(super) fn config_get(
    context: &mut Context<'_>,
    arguments: Arguments<'_, '_>,
) -> Result<(), Refusal> {
    let limits = &context.clients.limits;
    let settings = [
        ("appendonly", "no".to_owned()),
        ("bind", context.clients.local.ip().to_string()),
        ("databases", Database::COUNT.to_string()),
        ("maxclients", limits.connections.to_string()),
        ("maxmemory", "0".to_owned()),
        ("port", context.clients.local.port().to_string()),
        ("proto-max-bulk-len", limits.request.argument_bytes.to_string()),
        ("client-query-buffer-limit", limits.request.request_bytes.to_string()),
        ("save", String::new()),
        ("timeout", limits.idle.map_or(0, |idle| idle.as_secs()).to_string()),
    ];
    let patterns = arguments.from(2).map(|pattern| glob(&pattern.to_ascii_lowercase()));
    let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
    let fits = |name: &str| patterns.iter().any(|pattern| pattern.matches(name.as_bytes()));
    let asked: Vec<_> = settings.iter().filter(|(name, _)| fits(name)).collect();
    context.replies.map(asked.len());
    for (name, value) in asked {
        context.replies.text(name);
        context.replies.text(value);
    }
    Ok(())
}

//! `umbel has`, `umbel who` and `umbel missing`: queries about any number of keys.
//!
//! Answers are printed as they arrive, in the order of the keys.

use std::cell::Cell;
use std::io::{self, BufWriter, IsTerminal as _, StdoutLock, Write as _};
use std::process::ExitCode;

use clap::Args;
use redis::Value;
use serde::Serialize;
use umbel::text::bytes_for_terminal;

use super::keys::Keys;
use super::{Options, set_name};
use crate::client::{Asked, Batch, Fields, flags, stream, texts, wrong_answer};
use crate::output::{JsonKey, checked, ended_by_reader, json_line, part};
use crate::progress::Progress;

/// Print the keys that the host itself holds (exact)
#[derive(Args)]
#[command(
    override_usage = usage!("has", "KEY"),
    after_help = "\
Exit status as grep's: 0 if some key was printed, 1 if none, 2 for errors.
With --json: {\"keys\": [...], \"asked\": 3, \"count\": 1}; a key that is not UTF-8 is an object
{\"hex\": \"ff00\"}.

Examples:
  umbel has images layer/4f53 && echo 'already here'
  umbel has images --file wanted.txt > here.txt"
)]
pub(crate) struct Has {
    #[command(flatten)]
    query: KeyQuery,
}

/// Print which hosts hold each key, from the memory of the host that is asked
#[derive(Args)]
#[command(
    override_usage = usage!("who", "KEY"),
    after_help = "\
Prints each key, a tab and the names of the hosts, the asked one first if it holds the key.
A name is wrong at most as often as the set's false positive rate says; umbel locate asks
the hosts themselves. A set that the host has not heard of is answered as an empty one, with a
note on standard error. Exit status as grep's: 0 if some key has a host, 1 if none, 2 for errors.
With --json: {\"keys\": [{\"key\": \"a\", \"hosts\": [\"cache-1\"]}], \"asked\": 1, \"count\": 1}.

Examples:
  umbel who images layer/4f53
  umbel who images --file wanted.txt --at cache-2:7440 --json"
)]
pub(crate) struct Who {
    #[command(flatten)]
    query: KeyQuery,
}

/// Print the keys that no host holds; hosts that may hold a key are asked
#[derive(Args)]
#[command(
    override_usage = usage!("missing", "KEY"),
    after_help = "\
If a host that may hold a key does not reply in time, the key is not reported as missing: the
command fails and may be repeated. With --partial it prints the keys that are certainly missing,
lists the others on standard error, and exits with 1 if there are any; hosts whose keys are not
known at all are listed there too. With --json unconfirmed keys are in
'unconfirmed': {\"keys\": [\"a\"], \"asked\": 3, \"count\": 1, \"unconfirmed\": [\"b\"]}.

Examples:
  umbel missing builds --file outputs.txt | upload
  umbel missing builds --file outputs.txt --partial | upload
  umbel missing builds 4f53 77aa --json"
)]
pub(crate) struct Missing {
    /// Print the keys that are certainly missing, even if some hosts do not reply
    #[arg(long)]
    partial: bool,
    #[command(flatten)]
    query: KeyQuery,
}

#[derive(Args)]
struct KeyQuery {
    /// Set
    #[arg(value_parser = set_name)]
    set: String,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    options: Options,
}

impl Has {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let print = |printer: &mut Printer, batch: &Batch, answer: &Value| {
            let flags = flags(answer, batch.len())?;
            let held = batch.keys().zip(flags).filter(|(_, held)| *held);
            Some(held.map(|(key, _)| key).try_for_each(|key| printer.key(key)))
        };
        self.query.run("UMBEL.HAS", print).map(found)
    }
}

impl Who {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let print = |printer: &mut Printer, batch: &Batch, answer: &Value| {
            let Value::Array(answers) = answer else { return None };
            let hosts: Vec<_> = answers.iter().map(texts).collect::<Option<_>>()?;
            let matches = hosts.len() == batch.len();
            matches.then(|| {
                batch.keys().zip(&hosts).try_for_each(|(key, hosts)| printer.hosts(key, hosts))
            })
        };
        let count = self.query.run("UMBEL.WHO", print)?;
        if count == 0 {
            self.query.note_unknown_set();
        }
        Ok(found(count))
    }
}

impl Missing {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        if self.partial {
            return self.run_partial();
        }
        let print = |printer: &mut Printer, _: &Batch, answer: &Value| {
            Some(texts(answer)?.into_iter().try_for_each(|key| printer.key(key)))
        };
        self.query.run("UMBEL.MISSING", print).map(|_| ExitCode::SUCCESS)
    }

    fn run_partial(&self) -> anyhow::Result<ExitCode> {
        let unconfirmed = Cell::new(0);
        let print = |printer: &mut Printer, _: &Batch, answer: &Value| {
            let Value::Array(lists) = answer else { return None };
            let [missing, unsure] = lists.as_slice() else { return None };
            let (missing, unsure) = (texts(missing)?, texts(unsure)?);
            unconfirmed.set(unconfirmed.get() + unsure.len());
            printer.unconfirmed.get_or_insert_default();
            let listed = unsure.into_iter().try_for_each(|key| printer.unconfirmed(key));
            Some(listed.and_then(|()| missing.into_iter().try_for_each(|key| printer.key(key))))
        };
        self.query.run("UMBEL.MISSINGPARTIAL", print)?;
        self.query.note_incomplete();
        Ok(if unconfirmed.get() == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}

/// Exit code as of grep: 0 if any were found, otherwise 1.
pub(super) fn found(count: u64) -> ExitCode {
    if count > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

impl KeyQuery {
    /// Prints a note if the host does not know the set: the name may be mistyped, and the answers
    /// alone look like those of an empty set.
    fn note_unknown_set(&self) {
        let known = self
            .options
            .at
            .connect()
            .and_then(|mut client| client.ask(&[b"EXISTS", self.set.as_bytes()]));
        if matches!(known, Ok(Value::Int(0))) {
            crate::note(&format!("the host knows of nobody who has a set '{}'", self.set));
        }
    }

    /// Prints notes if the host does not know the keys of every host that it expects: keys that
    /// only an unknown host holds are listed as missing.
    fn note_incomplete(&self) {
        let info = self.options.at.connect().and_then(|mut client| client.ask(&[b"UMBEL.INFO"]));
        let Ok(info) = info else { return };
        for reason in Fields::of(&info).map(|info| info.texts("missing_hosts")).unwrap_or_default()
        {
            crate::note(&format!("not complete: {}", umbel::text::for_terminal(&reason)));
        }
    }

    /// Queries all keys; `print` returns `None` for an unexpected reply. Returns how many keys were
    /// found.
    fn run(
        &self,
        command: &str,
        print: impl Fn(&mut Printer, &Batch, &Value) -> Option<io::Result<()>>,
    ) -> anyhow::Result<u64> {
        let keys = self.keys.listed();
        keys.check()?;
        let at = &self.options.at;
        let asked = Asked::new(&[command, &self.set]);
        let mut printer = Printer::new(self.options.json, "keys");
        let outcome = stream(
            at,
            &asked,
            |each| keys.read(&progress(), each),
            |batch, answer| {
                printer.asked += batch.len() as u64;
                let printed = print(&mut printer, batch, answer);
                checked(printed.ok_or_else(|| wrong_answer(at.address(), answer))?)?;
                checked(printer.flush())
            },
        );
        let outcome = outcome.and_then(|()| checked(printer.finish()));
        ended_by_reader(outcome.map(|()| ExitCode::SUCCESS))?;
        Ok(printer.found)
    }
}

/// No bar if keys are printed to the same terminal: they would overwrite each other.
pub(super) fn progress() -> Progress {
    if io::stdout().is_terminal() { Progress::none() } else { Progress::new("asking") }
}

/// Prints keys or names as lines, or as one JSON object.
pub(super) struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    json: bool,
    /// The name of their field in the JSON object.
    called: &'static str,
    printed: u64,
    /// Number of keys queried.
    pub(super) asked: u64,
    /// Whether this lists all keys instead of answering queries.
    is_listing: bool,
    /// Number of keys found.
    pub(super) found: u64,
    /// Keys that could not be confirmed, as JSON, if these are listed.
    unconfirmed: Option<Vec<String>>,
}

/// A key and its hosts.
#[derive(Serialize)]
struct Holders<'a> {
    key: JsonKey<'a>,
    hosts: Vec<JsonKey<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paths: Option<Vec<Vec<JsonKey<'a>>>>,
}

/// A prefix, and the hosts that announce it.
pub(super) type Found<'a> = (&'a [u8], Vec<&'a [u8]>);

/// A name, and its longest announced prefix if there is one.
#[derive(Serialize)]
struct Matched<'a> {
    name: JsonKey<'a>,
    prefix: Option<JsonKey<'a>>,
    hosts: Vec<JsonKey<'a>>,
}

impl Printer {
    pub(super) fn new(json: bool, called: &'static str) -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let unconfirmed = None;
        Self { out, json, called, printed: 0, asked: 0, is_listing: false, found: 0, unconfirmed }
    }

    /// For a listing of all keys.
    pub(super) fn listing(json: bool, called: &'static str) -> Self {
        Self { is_listing: true, ..Self::new(json, called) }
    }

    /// Reports a key that could not be confirmed, separately from the answers.
    fn unconfirmed(&mut self, key: &[u8]) -> io::Result<()> {
        if self.json {
            let key = json_line(&JsonKey::of(key))?;
            self.unconfirmed.get_or_insert_default().push(key);
        } else {
            crate::print_to_stderr("unconfirmed", &bytes_for_terminal(key));
        }
        Ok(())
    }

    pub(super) fn key(&mut self, key: &[u8]) -> io::Result<()> {
        self.found += 1;
        match self.json {
            true => self.element(&JsonKey::of(key)),
            false => self.line(&[&part(key)]),
        }
    }

    pub(super) fn hosts(&mut self, key: &[u8], hosts: &[&[u8]]) -> io::Result<()> {
        self.found += u64::from(!hosts.is_empty());
        if self.json {
            let hosts = hosts.iter().map(|host| JsonKey::of(host)).collect();
            return self.element(&Holders { key: JsonKey::of(key), hosts, paths: None });
        }
        self.line(&[&part(key), b"\t", &part(&hosts.join(&b' '))])
    }

    /// Prints a name and what was found for it: a prefix and its hosts.
    pub(super) fn matched(&mut self, name: &[u8], found: Option<Found<'_>>) -> io::Result<()> {
        self.found += u64::from(found.is_some());
        if self.json {
            let (prefix, hosts) = found.unzip();
            let hosts = hosts.iter().flatten().map(|host| JsonKey::of(host)).collect();
            let prefix = prefix.map(JsonKey::of);
            return self.element(&Matched { name: JsonKey::of(name), prefix, hosts });
        }
        match found {
            Some((prefix, hosts)) => {
                let hosts = hosts.join(&b' ');
                self.line(&[&part(name), b"\t", &part(prefix), b"\t", &part(&hosts)])
            }
            None => self.line(&[&part(name), b"\t-"]),
        }
    }

    /// Prints the paths to the hosts; the last name of each path is the holder.
    pub(super) fn paths(&mut self, key: &[u8], paths: &[Vec<&[u8]>]) -> io::Result<()> {
        self.found += u64::from(!paths.is_empty());
        if self.json {
            let hosts = paths.iter().filter_map(|path| path.last()).map(|host| JsonKey::of(host));
            let hosts = hosts.collect();
            let paths =
                paths.iter().map(|path| path.iter().map(|host| JsonKey::of(host)).collect());
            let paths = Some(paths.collect());
            return self.element(&Holders { key: JsonKey::of(key), hosts, paths });
        }
        let ways: Vec<Vec<u8>> = paths.iter().map(|path| path.join(&b" > "[..])).collect();
        self.line(&[&part(key), b"\t", &part(&ways.join(&b", "[..]))])
    }

    fn line(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        parts.iter().try_for_each(|part| self.out.write_all(part))?;
        self.out.write_all(b"\n")
    }

    fn element(&mut self, element: &impl Serialize) -> io::Result<()> {
        match self.printed {
            0 => write!(self.out, "{{\"{}\":[", self.called)?,
            _ => self.out.write_all(b",")?,
        }
        self.printed += 1;
        self.out.write_all(json_line(element)?.as_bytes())
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.json {
            let Self { asked, found, called, .. } = self;
            if self.printed == 0 {
                write!(self.out, "{{\"{called}\":[")?;
            }
            self.out.write_all(b"],")?;
            if !self.is_listing {
                write!(self.out, "\"asked\":{asked},")?;
            }
            write!(self.out, "\"count\":{found}")?;
            if let Some(unconfirmed) = &self.unconfirmed {
                write!(self.out, ",\"unconfirmed\":[{}]", unconfirmed.join(","))?;
            }
            self.out.write_all(b"}\n")?;
        }
        self.out.flush()
    }
}

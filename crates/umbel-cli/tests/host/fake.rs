//! A small stand-in for a host: speaks RESP, and says what a test wants.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What the stand-in sends back, as bytes; `None` cuts the connection.
pub(crate) type Reply = Option<Vec<u8>>;
pub(crate) type Words = Vec<Vec<u8>>;

/// A port that answers until the test ends.
pub(crate) struct Fake {
    pub(crate) at: String,
    asked: Arc<Mutex<Vec<Words>>>,
}

impl Fake {
    /// Answers every command but the greetings with `answer`.
    pub(crate) fn start(answer: impl Fn(&[Vec<u8>]) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answer, heard) = (Arc::new(answer), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, heard) = (Arc::clone(&answer), Arc::clone(&heard));
                std::thread::spawn(move || serve(stream, &*answer, &heard));
            }
        });
        Self { at, asked }
    }

    /// A host with sets of its own and nobody beside it.
    pub(crate) fn host() -> Self {
        let sets = Mutex::new(Sets::new());
        Self::start(move |words| Some(sets.lock().expect("no panic").answer(words)))
    }

    /// All commands so far, without greetings.
    pub(crate) fn asked(&self) -> Vec<Words> {
        self.asked.lock().expect("no panic").clone()
    }
}

fn serve(stream: TcpStream, answer: &dyn Fn(&[Vec<u8>]) -> Reply, heard: &Mutex<Vec<Words>>) {
    let mut input = BufReader::new(stream.try_clone().expect("a clone"));
    let mut output = stream;
    while let Some(words) = read_command(&mut input) {
        let reply = match &words[0][..] {
            b"HELLO" => Some(b"%1\r\n$6\r\nserver\r\n$5\r\numbel\r\n".to_vec()),
            b"CLIENT" => Some(b"+OK\r\n".to_vec()),
            _ => {
                heard.lock().expect("no panic").push(words.clone());
                answer(&words)
            }
        };
        let Some(reply) = reply else { return };
        if output.write_all(&reply).is_err() {
            return;
        }
    }
}

fn read_command(input: &mut impl std::io::BufRead) -> Option<Words> {
    let mut number = |mark: u8| -> Option<usize> {
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line).ok()?;
        let digits = line.strip_prefix(&[mark])?.strip_suffix(b"\r\n")?;
        str::from_utf8(digits).ok()?.parse().ok()
    };
    let count = number(b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let mut line = Vec::new();
        input.read_until(b'\n', &mut line).ok()?;
        let digits = line.strip_prefix(b"$")?.strip_suffix(b"\r\n")?;
        let length: usize = str::from_utf8(digits).ok()?.parse().ok()?;
        let mut word = vec![0; length + 2];
        input.read_exact(&mut word).ok()?;
        word.truncate(length);
        words.push(word);
    }
    Some(words)
}

/// The sets of a host that is alone.
struct Sets {
    sets: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

impl Sets {
    fn new() -> Self {
        Self { sets: BTreeMap::new() }
    }

    fn answer(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let (command, arguments) = (String::from_utf8_lossy(&words[0]).into_owned(), &words[1..]);
        match (&*command, arguments) {
            ("UMBEL.ADD", [set, keys @ ..]) => {
                let set = self.sets.entry(set.clone()).or_default();
                integers(keys.iter().map(|key| set.insert(key.clone())))
            }
            ("UMBEL.ADDEX", [set, _, keys @ ..]) => {
                let set = self.sets.entry(set.clone()).or_default();
                integers(keys.iter().map(|key| set.insert(key.clone())))
            }
            ("UMBEL.SETS", []) => array(self.sets.keys().map(|set| bulk(set))),
            (command, [name, rest @ ..]) => match self.sets.get_mut(name) {
                Some(set) => known(command, set, rest),
                None => error("no such set"),
            },
            _ => error("unknown command"),
        }
    }
}

fn known(command: &str, set: &mut BTreeSet<Vec<u8>>, rest: &[Vec<u8>]) -> Vec<u8> {
    match (command, rest) {
        ("UMBEL.REM", keys) => integers(keys.iter().map(|key| set.remove(key))),
        ("UMBEL.HAS", keys) => integers(keys.iter().map(|key| set.contains(key))),
        ("UMBEL.WHO", keys) => {
            let hosts = |key| if set.contains(key) { vec![bulk(b"a")] } else { vec![] };
            array(keys.iter().map(|key| array(hosts(key).into_iter())))
        }
        ("UMBEL.LOCATE", [key, ..]) => array(set.contains(key).then(|| bulk(b"a")).into_iter()),
        ("UMBEL.MISSING", keys) => {
            array(keys.iter().filter(|key| !set.contains(*key)).map(|key| bulk(key)))
        }
        ("UMBEL.KEYS", [cursor, _, count]) => {
            let number = |bytes: &[u8]| -> usize {
                String::from_utf8_lossy(bytes).parse().expect("a number")
            };
            let (start, count) = (number(cursor), number(count));
            let end = if start + count < set.len() { start + count } else { 0 };
            let page = set.iter().skip(start).take(count).map(|key| bulk(key));
            array([bulk(end.to_string().as_bytes()), array(page)].into_iter())
        }
        ("UMBEL.POLICY", []) => bulk(b"manual"),
        ("UMBEL.INFO", []) => {
            map(&[("items", &format!(":{}\r\n", set.len())), ("miss", ",0.5\r\n")])
        }
        ("UMBEL.PUBLISH" | "UMBEL.POLICY", _) => b"+OK\r\n".to_vec(),
        _ => error("unknown command"),
    }
}

pub(crate) fn error(text: &str) -> Vec<u8> {
    format!("-ERR {text}\r\n").into_bytes()
}

pub(crate) fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

pub(crate) fn array(elements: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let elements: Vec<_> = elements.collect();
    [format!("*{}\r\n", elements.len()).into_bytes(), elements.concat()].concat()
}

pub(crate) fn map(fields: &[(&str, &str)]) -> Vec<u8> {
    let field =
        |(name, value): &(&str, &str)| [bulk(name.as_bytes()), value.as_bytes().to_vec()].concat();
    let fields: Vec<_> = fields.iter().map(field).collect();
    [format!("%{}\r\n", fields.len()).into_bytes(), fields.concat()].concat()
}

fn integers(flags: impl Iterator<Item = bool>) -> Vec<u8> {
    array(flags.map(|flag| format!(":{}\r\n", u8::from(flag)).into_bytes()))
}

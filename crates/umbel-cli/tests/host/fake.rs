//! A small stand-in for a host: speaks RESP, and says what a test wants.

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

//! HTTP as small as it can be, for examples: one request per connection, bodies with a length.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// Serves requests, a thread each: path and body in, status and JSON out.
pub(crate) fn serve(
    listen: &str,
    answer: impl Fn(&str, &str) -> (u16, String) + Send + Sync,
) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    eprintln!("listening on {}", listener.local_addr()?);
    std::thread::scope(|scope| {
        for stream in listener.incoming().flatten() {
            let answer = &answer;
            scope.spawn(move || reply(stream, answer));
        }
    });
    Ok(())
}

fn reply(stream: TcpStream, answer: impl Fn(&str, &str) -> (u16, String)) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = read_body(&mut input)?;
    let (status, json) = answer(&path, &body);
    let length = json.len() + 1;
    write!(
        input.get_mut(),
        "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{json}\n"
    )
}

/// Passes over the headers and reads as much as they announce, at most 16 MiB.
fn read_body(input: &mut BufReader<TcpStream>) -> io::Result<String> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = String::new();
    input.take(length.min(16 << 20)).read_to_string(&mut body)?;
    Ok(body)
}

/// Sends a request and waits for the body of the reply.
pub(crate) fn post(to: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line)?;
    let body = read_body(&mut input)?;
    match line.split(' ').nth(1) {
        Some("200") => Ok(body.trim_end().to_owned()),
        _ => Err(io::Error::other(format!("{to}{path}: {} {body}", line.trim()))),
    }
}

/// Tokens of a body: numbers separated by spaces.
pub(crate) fn tokens(body: &str) -> Option<Vec<u32>> {
    body.split_whitespace().map(|word| word.parse().ok()).collect()
}

/// The value of an option of the command line, or a default.
pub(crate) fn option(name: &str, default: &str) -> String {
    let words: Vec<String> = std::env::args().collect();
    let place = words.iter().position(|word| word == name);
    place.and_then(|place| words.get(place + 1)).map_or(default, String::as_str).to_owned()
}

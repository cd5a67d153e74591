//! A headless Chromium, driven over the W3C's WebDriver protocol: JSON over HTTP to `chromedriver`.
//!
//! The protocol is a standard and needs no library; the DevTools protocol below it would need a
//! WebSocket, and a page dumped by `--dump-dom` cannot be clicked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser with one page; it ends with the test.
pub(super) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    profile: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium ends with its session, the driver does not.
        if !self.session.is_empty() {
            let _ = request(self.port, "DELETE", &format!("/session/{}", self.session), None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The name of an element's id in answers, which the standard fixes.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

impl Browser {
    /// Starts one; `None`, with a message, where there is no browser.
    pub(super) fn start() -> Option<Self> {
        let profile = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut driver) = command.spawn() else {
            eprintln!(
                "skipped: chromedriver is not installed (Debian's package chromium-driver has it)"
            );
            return None;
        };
        let output = BufReader::new(driver.stdout.take().expect("piped"));
        let mut lines = output.lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').trim().parse().ok()
        });
        // What it prints later is read, so that it never waits.
        std::thread::spawn(move || lines.for_each(drop));
        let mut browser = Self {
            driver,
            port: port.expect("chromedriver says its port"),
            session: String::new(),
            profile,
        };
        browser.open_session();
        Some(browser)
    }

    fn open_session(&mut self) {
        let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
                     --disable-background-networking --disable-component-update --disable-sync \
                     --disable-dev-shm-usage --window-size=1200,1000";
        let profile = format!("--user-data-dir={}", self.profile.path().display());
        let flags: Vec<&str> = flags.split_whitespace().chain([profile.as_str()]).collect();
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": flags },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let answer = request(self.port, "POST", "/session", Some(&wanted));
        let session = answer.pointer("/value/sessionId").and_then(Value::as_str);
        session.unwrap_or_else(|| panic!("no session: {answer}")).clone_into(&mut self.session);
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let path = format!("/session/{}{path}", self.session);
        let mut answer = request(self.port, method, &path, body);
        assert!(answer.pointer("/value/error").is_none(), "{path}: {answer}");
        answer["value"].take()
    }

    pub(super) fn open(&self, address: &str) {
        self.ask("POST", "/url", Some(&json!({ "url": address })));
    }

    /// What a script returns.
    pub(super) fn script(&self, script: &str) -> Value {
        self.ask("POST", "/execute/sync", Some(&json!({ "script": script, "args": [] })))
    }

    /// A command of the DevTools.
    pub(super) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.ask("POST", "/goog/cdp/execute", Some(&body))
    }

    /// Whether an element is there.
    pub(super) fn has(&self, selector: &str) -> bool {
        let found = json!({ "using": "css selector", "value": selector });
        self.ask("POST", "/elements", Some(&found)).as_array().is_some_and(|all| !all.is_empty())
    }

    fn element(&self, selector: &str) -> String {
        self.wait_for(selector);
        let found = json!({ "using": "css selector", "value": selector });
        let element = self.ask("POST", "/element", Some(&found));
        element[ELEMENT].as_str().expect("an element").to_owned()
    }

    pub(super) fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.ask("POST", &format!("/element/{element}/click"), Some(&json!({})));
    }

    /// Replaces what a field holds.
    pub(super) fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.ask("POST", &format!("/element/{element}/clear"), Some(&json!({})));
        self.ask("POST", &format!("/element/{element}/value"), Some(&json!({ "text": text })));
    }

    /// Presses a key, which is named as in JavaScript and has this code.
    pub(super) fn press(&self, key: &str, code: u32) {
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.devtools("Input.dispatchKeyEvent", &event);
        }
    }

    /// All text that is shown.
    pub(super) fn text(&self) -> String {
        self.script("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn wait_for(&self, selector: &str) {
        self.wait(selector, || self.has(selector));
    }

    pub(super) fn wait_for_text(&self, text: &str) {
        self.wait(text, || self.text().contains(text));
    }

    pub(super) fn wait(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            let shown = || format!("{what}\n{}\n{:?}", self.text(), self.errors());
            assert!(start.elapsed() < Duration::from_secs(60), "not within a minute: {}", shown());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Errors and warnings in the console since this was last asked.
    pub(super) fn errors(&self) -> Vec<String> {
        let log = self.ask("POST", "/se/log", Some(&json!({ "type": "browser" })));
        let entries = log.as_array().cloned().unwrap_or_default();
        let bad = entries
            .iter()
            .filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING");
        bad.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A window of this width, light or dark.
    pub(super) fn look(&self, width: u64, scheme: &str) {
        let is_phone = width < 600;
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": is_phone }),
        );
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": [feature] }));
    }

    /// The whole page as a picture.
    pub(super) fn picture(&self) -> Vec<u8> {
        let whole = json!({ "format": "png", "captureBeyondViewport": true });
        let data = self.devtools("Page.captureScreenshot", &whole);
        let data = data["data"].as_str().expect("a picture");
        base64::engine::general_purpose::STANDARD.decode(data).expect("base64")
    }
}

/// One request to the driver, and its answer.
fn request(port: u16, method: &str, path: &str, body: Option<&Value>) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the driver answers");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let body = body.map(ToString::to_string).unwrap_or_default();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body.as_bytes()))
        .expect("sent");
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line).expect("headers");
        if read == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).expect("a body");
    serde_json::from_slice(&answer).expect("JSON")
}

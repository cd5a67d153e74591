//! A cable between two hosts that a test can pull and put back: a TCP proxy.

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A cable to an address; gone with the test.
pub(crate) struct Cable {
    /// Where to connect instead.
    pub(crate) at: String,
    shared: Arc<Shared>,
}

struct Shared {
    to: String,
    is_plugged: AtomicBool,
    is_over: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Cable {
    pub(crate) fn new(to: &str, is_plugged: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound").to_string();
        let shared = Arc::new(Shared {
            to: to.to_owned(),
            is_plugged: is_plugged.into(),
            is_over: false.into(),
            streams: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        listener.set_nonblocking(true).expect("a listener that does not wait");
        std::thread::spawn(move || accepting.accept(&listener));
        Self { at, shared }
    }

    /// Cuts what goes through it, and lets nothing through from now on.
    pub(crate) fn pull(&self) {
        self.shared.is_plugged.store(false, Ordering::SeqCst);
        self.shared.cut();
    }

    pub(crate) fn plug(&self) {
        self.shared.is_plugged.store(true, Ordering::SeqCst);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.pull();
    }
}

impl Shared {
    fn accept(&self, listener: &TcpListener) {
        while !self.is_over.load(Ordering::SeqCst) {
            match listener.accept() {
                Ok((stream, _)) if self.is_plugged.load(Ordering::SeqCst) => self.join(stream),
                Ok(_) => {}
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Carries bytes both ways until either end closes.
    fn join(&self, here: TcpStream) {
        let Ok(there) = TcpStream::connect(&self.to) else { return };
        here.set_nonblocking(false).expect("a stream that waits");
        let clone = |stream: &TcpStream| stream.try_clone().expect("a clone");
        self.streams.lock().expect("no panic").extend([clone(&here), clone(&there)]);
        for (mut from, mut to) in [(clone(&here), clone(&there)), (there, here)] {
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }

    fn cut(&self) {
        for stream in self.streams.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

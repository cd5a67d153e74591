//! The two sides: hosts in this process, redis-server in its own.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use umbel_node::Host;

/// A host with its catalogue in memory or in a folder, and its port for Redis clients.
pub(crate) async fn host(folder: Option<&Path>) -> anyhow::Result<(Host, u16)> {
    let any = "127.0.0.1:0";
    let builder = Host::builder().name("compared").with_ports();
    let builder = builder.set("resp", [any]).set("http", [any]).set("listen", [any]);
    let builder = match folder {
        Some(folder) => builder.data(folder),
        None => builder,
    };
    let host = builder.start().await?;
    let address = host.addresses().resp.context("the host has no port for Redis clients")?;
    Ok((host, address.port()))
}

/// A redis-server of our own, ended when dropped.
#[derive(Debug)]
pub(crate) struct Rival {
    /// Where it listens, on loopback.
    pub(crate) port: u16,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Rival {
    /// Starts one in a folder of its own and waits until it takes connections.
    pub(crate) fn start(options: &[&str]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        // A port that was free a moment ago: redis-server cannot be told to choose one.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(options)
            .current_dir(&folder)
            .stdout(Stdio::null())
            .spawn()
            .context(
                "redis-server is missing: install it (Debian: apt-get install redis-server)",
            )?;
        let rival = Self { port, child, _folder: folder };
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if start.elapsed() > Duration::from_secs(10) {
                bail!("redis-server does not listen on port {port}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(rival)
    }
}

impl Rival {
    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Two services that find each other's objects, each with a host inside: no port in between.
//!
//! `cargo run -p umbel-node --example embedded`

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use umbel_node::Host;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let anywhere: SocketAddr = "127.0.0.1:0".parse()?;
    let first = Host::builder()
        .name("cache-1")
        .listen(anywhere)
        .advertise("http://cache-1:8080")
        .start()
        .await?;
    let at = first.addresses().listen.expect("it listens");
    let second = Host::builder().name("cache-2").listen(anywhere).peers(&[at]).start().await?;

    first.add_key("images", b"cat.png").await?;
    first.publish("images")?; // now, rather than when its policy says so

    // Answered from memory, in this thread.
    while second.who_has("images", b"cat.png").unwrap_or_default().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("cat.png: {:?}", second.who_has("images", b"cat.png")?);
    for host in second.hosts() {
        println!("{} ({}) {}", host.name, host.state, host.advertise.unwrap_or_default());
    }
    // Asked and confirmed.
    println!("located at {:?}", second.locate("images", b"cat.png", None).await?);
    first.stop().await;
    second.stop().await;
    Ok(())
}

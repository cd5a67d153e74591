//! Follows the KV cache events that an inference engine such as vLLM or SGLang publishes, and keeps
//! the blocks that a worker holds as a set of an umbel host.
//!
//! ```text
//! engine ─► zmtp (ZeroMQ) ─► follower (sequence numbers, replay, lives)
//!                              └► event (msgpack) ─► blocks (exact) ─► Sink: sets of a host
//! ```
//!
//! * [`event`]: decodes messages, in either of the two forms that engines have used.
//! * [`canonical`]: engine-independent hashes of blocks, for routers that have the tokens.
//! * [`blocks`]: the blocks that a worker holds, and the changes not yet sent to a [`Sink`].
//! * [`follower`]: detects missing messages, and whether the engine has restarted (a new *life*).
//! * [`sidecar`]: connects all of this with sockets and threads; `umbel kv follow` runs it.
//! * [`stand_in`]: a publisher that imitates an engine, for tests and examples.
//!
//! Always true: bytes from outside never cause a panic; invalid ones are counted and reported. The
//! engine is never slowed down: a subscriber that falls behind loses messages and requests a
//! replay.
//!
//! Not here: umbel's hosts. Anything that keeps sets of keys can be a [`Sink`].

#![forbid(unsafe_code)]

pub mod blocks;
pub mod canonical;
pub mod event;
pub mod follower;
pub mod msgpack;
pub mod sidecar;
pub mod stand_in;
pub mod zmtp;

pub use blocks::{BlockKey, Blocks, Changes};
pub use sidecar::{Report, SidecarConfig, Sink, SinkError, run};

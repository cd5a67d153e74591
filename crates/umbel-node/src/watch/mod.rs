//! A directory whose files are the keys of a set: listed, and followed as files come and go.
//!
//! ```text
//! Tree ─ which files count, and what their keys are ─► scan: all keys, look: one file now
//! Follower ─ inotify on every directory of the tree ─► Changes: keys added and removed, or: scan again
//! Watcher ─ steps of both ─► Target: the set, of this process or of a host that is asked
//! ```
//!
//! Always true: symbolic links that lead out of the tree are ignored; what was changed while a scan
//! ran is reported by the follower that was made before it; if events were lost, a scan is due.
//!
//! Not here: whose set it is, and how its keys are changed.

mod follower;
mod options;
mod tree;
mod watcher;

pub use follower::{Changes, Follower};
pub use options::{KeyForm, WatchOptions};
pub use tree::Tree;
pub use watcher::{PAUSE, Synced, Target, Watcher};

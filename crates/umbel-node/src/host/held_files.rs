//! Files of watched directories that a host serves itself (`watch.serve`): the objects of its keys.

use std::path::PathBuf;

use super::Host;
use crate::settings::WatchedDirectory;

impl Host {
    /// The file of what is asked for under this name, if this host serves the directory of the set
    /// and the file is in it. Reads directories: may block.
    pub(crate) fn held_file(&self, set: &str, name: &[u8]) -> Option<PathBuf> {
        let settings = self.inner.live.current();
        let is_served = |watch: &&WatchedDirectory| watch.serve && watch.set.as_str() == set;
        let tree = settings.watches.iter().find(is_served)?.tree();
        self.inner.sets.with_keys(set, &[name], |keys| tree.file(keys[0]))
    }
}

//! Which files of a directory are keys, as flags.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use umbel_node::watch::{KeyForm, Tree, WatchOptions};

/// Which files of a directory are keys.
#[derive(Args)]
#[command(next_help_heading = "Files")]
pub(super) struct FileArgs {
    /// Only files that fit this pattern ('*', '?'; with a / it is compared with the path); may be repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// No file that fits this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Ignore files that changed more recently, such as 5s, until they are older
    #[arg(long, value_name = "DURATION", value_parser = crate::values::seconds)]
    min_age: Option<f64>,
    /// Key of a file: 'path' (below the directory), 'basename' or 'stem' (its name without the suffix)
    #[arg(long, value_name = "FORM", default_value = "path")]
    key: KeyForm,
    /// Include temporary files: .*, *~, *.tmp, *.temp, *.part, *.partial, *.swp, *.lock, *.0123456789
    #[arg(long)]
    temporary: bool,
}

impl FileArgs {
    pub(super) fn tree(&self, dir: &Path) -> Tree {
        let options = WatchOptions {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            min_age: self.min_age.map(Duration::from_secs_f64).unwrap_or_default(),
            key: self.key,
            temporary: self.temporary,
        };
        Tree::new(dir.to_owned(), options)
    }

    /// Whether none of the flags is given.
    pub(super) fn is_default(&self) -> bool {
        self.include.is_empty()
            && self.exclude.is_empty()
            && self.min_age.is_none()
            && self.key == KeyForm::Path
            && !self.temporary
    }
}

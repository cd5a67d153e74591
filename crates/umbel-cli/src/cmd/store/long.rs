//! The commands that may take long, with a progress bar.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use umbel_store::Progress;

use super::Outcome;

/// A progress bar that counts bytes; without a total it is a spinner. Hidden without a terminal.
pub(crate) fn bytes_bar(what: &'static str, total: u64) -> ProgressBar {
    let (bar, template) = match total {
        0 => (ProgressBar::new_spinner(), "{msg} {bytes} ({bytes_per_sec}) {spinner}"),
        _ => (ProgressBar::new(total), "{msg} {wide_bar} {bytes}/{total_bytes} {eta}"),
    };
    style(bar, what, template)
}

fn records_bar(what: &'static str) -> ProgressBar {
    style(ProgressBar::new(0), what, "{msg} {wide_bar} {human_pos}/{human_len} {eta}")
}

fn style(bar: ProgressBar, what: &'static str, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).expect("a template written here");
    bar.with_style(style).with_message(what)
}

/// A progress callback that updates a bar.
pub(crate) fn follow(bar: &ProgressBar) -> impl FnMut(Progress) {
    |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    }
}

pub(super) fn integrate(dir: &Path) -> anyhow::Result<Outcome> {
    let store = super::open(dir)?;
    let bar = records_bar("integrating");
    std::thread::scope(|scope| {
        let work = scope.spawn(|| store.integrate());
        while !work.is_finished() {
            if let Some(progress) = store.progress() {
                follow(&bar)(progress);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        work.join().expect("integrating returns errors, it does not panic")
    })?;
    bar.finish_and_clear();
    let stat = store.stat();
    Ok(Outcome {
        text: format!("{} records in a master of {} bytes", stat.records, stat.master_bytes),
        json: json!({ "records": stat.records, "master_bytes": stat.master_bytes }),
    })
}

/// What a backup does with the store's files.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    Copy,
    Link,
    /// Copies what an earlier backup lacks.
    Add,
}

pub(super) fn backup(dir: &Path, to: &Path, how: How) -> anyhow::Result<Outcome> {
    let store = super::open(dir)?;
    let bar = bytes_bar("backing up", 1);
    let done = match how {
        How::Copy => store.backup(to, follow(&bar)),
        How::Link => store.backup_linked(to, follow(&bar)),
        How::Add => store.backup_incremental(to, follow(&bar)),
    };
    bar.finish_and_clear();
    let done = done.with_context(|| format!("cannot back up to {}", to.display()))?;
    let (records, copied, linked) = (done.records, done.copied_bytes, done.linked_bytes);
    Ok(Outcome {
        text: format!("{records} records, {copied} bytes copied, {linked} linked"),
        json: json!({ "records": records, "copied_bytes": copied, "linked_bytes": linked }),
    })
}

pub(super) fn restore(from: &Path, dir: &Path) -> anyhow::Result<Outcome> {
    let bar = bytes_bar("restoring", 1);
    let records = umbel_store::restore(from, dir, follow(&bar));
    bar.finish_and_clear();
    let records = records
        .with_context(|| format!("cannot restore {} to {}", from.display(), dir.display()))?;
    Ok(Outcome { text: format!("{records} records restored"), json: json!({ "records": records }) })
}

pub(super) fn verify(dir: &Path) -> anyhow::Result<Outcome> {
    let store = super::read(dir)?;
    let bar = bytes_bar("verifying", 1);
    let found = store.verify(follow(&bar));
    bar.finish_and_clear();
    let found = found.with_context(|| format!("{} is damaged", dir.display()))?;
    let (records, files, bytes) = (found.records, found.files, found.bytes);
    Ok(Outcome {
        text: format!("{records} records in {files} files, {bytes} bytes: all valid"),
        json: json!({ "records": records, "files": files, "bytes": bytes }),
    })
}

//! Takes screenshots of the lab's report and of the dashboard, at two widths.

use std::path::Path;
use std::process::Command;

use crate::{cargo, ensure_installed, step};

/// Widths in pixels: of a desktop and of a phone.
const WIDTHS: [u64; 2] = [1200, 390];
/// Height of a picture in pixels: only the first part of a very long page.
const HEIGHT: u64 = 12_000;

/// Writes screenshots of every view of a dashboard with live hosts to `target/dashboard`.
pub(crate) fn dashboard() -> Result<(), String> {
    ensure_installed("chromedriver", "chromium-driver")?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| String::from("target"));
    let folder = std::path::absolute(format!("{target}/dashboard")).map_err(|e| e.to_string())?;
    let mut run = cargo("test --workspace --exclude umbel-model --test integration --");
    run.args(["--ignored", "--nocapture", "screenshots_of_every_view"]);
    run.env("UMBEL_SCREENSHOTS", folder);
    step("pictures of the dashboard", run)
}

/// Writes the quick report, and screenshots of it, to `target/report`.
pub(crate) fn run() -> Result<(), String> {
    ensure_installed("chromium", "chromium")?;
    let folder = Path::new("target/report");
    step(
        "the quick report",
        cargo("run --package umbel-cli -- lab report --quick --out target/report"),
    )?;
    let page = folder.join("report.html").canonicalize();
    let page = page.map_err(|error| format!("cannot find the report: {error}"))?;
    for width in WIDTHS {
        let picture = folder.join(format!("report-{width}.png"));
        let mut chromium = Command::new("chromium");
        chromium
            .args(
                "--headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run".split(' '),
            )
            .args(
                "--disable-background-networking --disable-component-update --disable-sync"
                    .split(' '),
            )
            .arg(format!("--user-data-dir={}", folder.join("browser").display()))
            .arg(format!("--window-size={width},{HEIGHT}"))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(format!("file://{}", page.display()));
        step(&format!("a picture of {width} pixels"), chromium)?;
        println!("{}", picture.display());
    }
    Ok(())
}

//! The lab's report as a reader sees it: pictures of the page at two widths.

use std::path::Path;
use std::process::Command;

use crate::{cargo, ensure_installed, step};

/// Of a desk and of a telephone.
const WIDTHS: [u64; 2] = [1200, 390];
/// Pixels of a picture: the first screens of a page of hundreds.
const HEIGHT: u64 = 12_000;

/// Writes the quick report and pictures of it below `target/report`.
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

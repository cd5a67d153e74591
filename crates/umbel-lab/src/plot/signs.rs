//! Signs of single points as SVG markup, for plots and their legends.

use std::fmt::Write as _;

pub(super) fn dot(x: f64, y: f64, colour: usize) -> String {
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" class=\"f{colour}\"/>")
}

pub(super) fn cross(x: f64, y: f64, colour: usize) -> String {
    let (left, top) = (x - 4.0, y - 4.0);
    format!(
        "<path d=\"M{left:.1} {top:.1}l8 8m0 -8l-8 8\" class=\"s{colour}\" stroke-width=\"1.6\"/>"
    )
}

pub(super) fn bar(x: f64, top: f64, bottom: f64, colour: usize) -> String {
    let left = x - 3.0;
    format!(
        "<path d=\"M{left:.1} {top:.1}h6m-3 0V{bottom:.1}m-3 0h6\" fill=\"none\" class=\"s{colour}\" opacity=\"0.6\"/>"
    )
}

pub(super) fn put(svg: &mut String, markup: std::fmt::Arguments<'_>) {
    // Writing into a string never fails.
    _ = writeln!(svg, "{markup}");
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Pixels of the area that is plotted in.
pub(super) const PLOT_WIDTH: f64 = 350.0;

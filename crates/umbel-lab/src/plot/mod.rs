//! Plots as SVG: panels of lines and points, side by side.
//!
//! The markup is written by hand because that is shorter: a few hundred bytes per panel, no fonts,
//! no scripts, nothing fetched, the same bytes every time. Lines are closed forms, dots are
//! simulated, bars show the spread of the seeds, crosses are numbers printed in a paper.

mod draw;
mod legend;
mod scale;
mod signs;
mod style;

pub(crate) use style::STYLE;

use draw::{ACROSS, HEAD, PLOT_HEIGHT, TOP, WIDTH};
use signs::{escaped, put};

/// Some panels under one title.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plot {
    pub(crate) panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    title: String,
    x: &'static str,
    y: &'static str,
    is_log: bool,
    is_log_x: bool,
    /// Names of the positions 0, 1, … of the x axis, if they are not numbers.
    categories: Vec<String>,
    series: Vec<Series>,
}

#[derive(Debug, Clone)]
struct Series {
    name: String,
    colour: usize,
    points: Points,
}

#[derive(Debug, Clone)]
enum Points {
    Line(Vec<(f64, f64)>),
    Dashed(Vec<(f64, f64)>),
    Dots(Vec<(f64, f64)>),
    Crosses(Vec<(f64, f64)>),
    /// x, low, high.
    Bars(Vec<(f64, f64, f64)>),
    /// Moments: vertical lines.
    Marks(Vec<f64>),
}

impl Panel {
    pub(crate) fn new(title: impl Into<String>, x: &'static str, y: &'static str) -> Self {
        let (categories, series) = (Vec::new(), Vec::new());
        Self { title: title.into(), x, y, is_log: false, is_log_x: false, categories, series }
    }

    /// With names instead of numbers on the x axis: x is 0 for the first, 1 for the second.
    pub(crate) fn categories(mut self, names: Vec<String>) -> Self {
        self.categories = names;
        self
    }

    /// With a logarithmic y axis; points at or below zero are left out.
    pub(crate) fn log(mut self) -> Self {
        self.is_log = true;
        self
    }

    /// With a logarithmic x axis; all x are above zero.
    pub(crate) fn log_x(mut self) -> Self {
        self.is_log_x = true;
        self
    }

    pub(crate) fn line(self, name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        self.with(name, colour, Points::Line(points))
    }

    pub(crate) fn dashed(self, name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        self.with(name, colour, Points::Dashed(points))
    }

    pub(crate) fn dots(self, name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        self.with(name, colour, Points::Dots(points))
    }

    pub(crate) fn crosses(self, name: &str, colour: usize, points: Vec<(f64, f64)>) -> Self {
        self.with(name, colour, Points::Crosses(points))
    }

    pub(crate) fn bars(self, name: &str, colour: usize, points: Vec<(f64, f64, f64)>) -> Self {
        self.with(name, colour, Points::Bars(points))
    }

    pub(crate) fn marks(self, name: &str, colour: usize, moments: Vec<f64>) -> Self {
        self.with(name, colour, Points::Marks(moments))
    }

    fn with(mut self, name: &str, colour: usize, points: Points) -> Self {
        self.series.push(Series { name: name.to_owned(), colour, points });
        self
    }
}

impl Plot {
    pub(crate) fn of(panels: impl Into<Vec<Panel>>) -> Self {
        Self { panels: panels.into() }
    }

    /// The whole picture, as a file of its own.
    pub(crate) fn to_svg(&self, title: &str) -> String {
        let title = escaped(title);
        let inside = format!(
            "<title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n\
             <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n"
        );
        self.drawn(&inside, HEAD)
    }

    /// Every panel as a separate picture, for a page that has the style and a title, and arranges
    /// as many side by side as there is room for.
    pub(crate) fn to_inline_svgs(&self, title: &str) -> String {
        let inside = format!("<title>{}</title>\n", escaped(title));
        let one = |panel: &Panel| Self::of([panel.clone()]).drawn(&inside, 0.0);
        self.panels.iter().map(one).collect()
    }

    fn drawn(&self, inside: &str, head: f64) -> String {
        // Four look better as a square.
        let across = if self.panels.len() == 4 { 2 } else { self.panels.len().clamp(1, ACROSS) };
        let down = self.panels.len().div_ceil(across).max(1);
        let below = self.panels.iter().map(Panel::below).fold(0.0, f64::max);
        let height = TOP + PLOT_HEIGHT + below;
        let (width, total) = (across as f64 * WIDTH, head + down as f64 * height);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"{width}\" \
             height=\"{total}\" viewBox=\"0 0 {width} {total}\" \
             font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n{inside}"
        );
        for (i, panel) in self.panels.iter().enumerate() {
            let (x, y) = ((i % across) as f64 * WIDTH, head + (i / across) as f64 * height);
            put(&mut svg, format_args!("<g transform=\"translate({x} {y})\">"));
            panel.draw(&mut svg);
            put(&mut svg, format_args!("</g>"));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_is_one_well_formed_picture() {
        let panel = Panel::new("a < b & c", "x", "y")
            .line("line", 0, vec![(0.0, 1.0), (1.0, 2.0)])
            .dashed("dashed", 1, vec![(0.0, 1.0), (1.0, 2.0)])
            .dots("dots", 2, vec![(0.5, f64::NAN), (1.0, 0.0)])
            .crosses("crosses", 3, vec![(0.5, 1.0)])
            .bars("bars", 4, vec![(0.5, 0.0, 1.0)])
            .marks("marks", 5, vec![0.3]);
        let svg = Plot::of([panel.clone(), panel.log()]).to_svg("title");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt; b &amp; c"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    }

    #[test]
    fn an_empty_plot_is_drawn_too() {
        assert!(Plot::default().to_svg("").ends_with("</svg>\n"));
        assert!(Plot::of([Panel::new("", "", "").log()]).to_svg("").contains("</g>"));
    }
}

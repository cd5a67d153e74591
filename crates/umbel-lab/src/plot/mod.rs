//! Plots as SVG: panels of lines and points, one beside the other.
//!
//! Written by hand because that is the shorter way: a few hundred bytes of markup a panel,
//! no fonts, no scripts, nothing fetched, the same bytes every time. Lines are closed forms,
//! dots are simulated, bars show the spread of the seeds, crosses are what a paper prints.

use std::fmt::Write as _;

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
        Self { title: title.into(), x, y, is_log: false, series: Vec::new() }
    }

    /// With a logarithmic y axis; points at or below zero are left out.
    pub(crate) fn log(mut self) -> Self {
        self.is_log = true;
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

    /// The whole picture.
    pub(crate) fn to_svg(&self, title: &str) -> String {
        // Four look better as a square.
        let across = if self.panels.len() == 4 { 2 } else { self.panels.len().clamp(1, ACROSS) };
        let down = self.panels.len().div_ceil(across).max(1);
        let legend = self.panels.iter().map(Panel::legend_lines).max().unwrap_or(0);
        let height = TOP + PLOT_HEIGHT + BOTTOM + legend as f64 * LEGEND_LINE;
        let (width, total) = (across as f64 * WIDTH, HEAD + down as f64 * height);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{total}\" \
             viewBox=\"0 0 {width} {total}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"12\" fill=\"#222\">\n<title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"16\" y=\"26\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n",
            title = escaped(title)
        );
        for (i, panel) in self.panels.iter().enumerate() {
            let (x, y) = ((i % across) as f64 * WIDTH, HEAD + (i / across) as f64 * height);
            put(&mut svg, format_args!("<g transform=\"translate({x} {y})\">"));
            panel.draw(&mut svg);
            put(&mut svg, format_args!("</g>"));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Panel {
    fn draw(&self, svg: &mut String) {
        let (x, y) = (self.x_scale(), self.y_scale());
        put(
            svg,
            format_args!(
                "<text x=\"{LEFT}\" y=\"{}\" font-weight=\"bold\">{}</text>",
                TOP - 10.0,
                escaped(&self.title)
            ),
        );
        self.draw_axes(svg, &x, &y);
        for series in &self.series {
            series.draw(svg, &x, &y);
        }
        self.draw_legend(svg);
    }

    fn draw_axes(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
        for (value, label) in y.ticks() {
            let at = y.at(value);
            put(
                svg,
                format_args!(
                    "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#e4e4e4\"/>\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                    LEFT - 6.0,
                    at + 4.0
                ),
            );
        }
        for (value, label) in x.ticks() {
            let at = x.at(value);
            put(
                svg,
                format_args!(
                    "<path d=\"M{at:.1} {bottom}v4\" stroke=\"#888\"/>\
                     <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                    bottom + 17.0
                ),
            );
        }
        put(
            svg,
            format_args!(
                "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
                 <text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                LEFT + PLOT_WIDTH / 2.0,
                bottom + 34.0,
                escaped(self.x),
                TOP + PLOT_HEIGHT / 2.0,
                escaped(self.y)
            ),
        );
    }

    fn legend_lines(&self) -> usize {
        self.series.len().div_ceil(LEGEND_ACROSS)
    }

    fn draw_legend(&self, svg: &mut String) {
        for (i, series) in self.series.iter().enumerate() {
            let x = LEFT + (i % LEGEND_ACROSS) as f64 * PLOT_WIDTH / LEGEND_ACROSS as f64;
            let y = TOP + PLOT_HEIGHT + 52.0 + (i / LEGEND_ACROSS) as f64 * LEGEND_LINE;
            let (colour, middle) = (series.colour(), y - 4.0);
            let sign = match &series.points {
                Points::Line(_) => {
                    format!("<path d=\"M{x} {middle}h20\" stroke=\"{colour}\" stroke-width=\"2\"/>")
                }
                Points::Dashed(_) => format!(
                    "<path d=\"M{x} {middle}h20\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>"
                ),
                Points::Dots(_) => dot(x + 10.0, middle, colour),
                Points::Crosses(_) => cross(x + 10.0, middle, colour),
                Points::Bars(_) => bar(x + 10.0, middle - 5.0, middle + 5.0, colour),
                Points::Marks(_) => {
                    format!("<path d=\"M{} {}v12\" stroke=\"{colour}\"/>", x + 10.0, middle - 6.0)
                }
            };
            put(
                svg,
                format_args!(
                    "{sign}<text x=\"{}\" y=\"{y}\">{}</text>",
                    x + 26.0,
                    escaped(&series.name)
                ),
            );
        }
    }

    fn x_scale(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| series.points.xs());
        Scale::linear(values, (LEFT, LEFT + PLOT_WIDTH), false)
    }

    fn y_scale(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| series.points.ys());
        let ends = (TOP + PLOT_HEIGHT, TOP);
        if self.is_log { Scale::log(values, ends) } else { Scale::linear(values, ends, true) }
    }
}

impl Series {
    fn colour(&self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }

    fn draw(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let colour = self.colour();
        let place = |(a, b): &(f64, f64)| y.shows(*b).then(|| (x.at(*a), y.at(*b)));
        match &self.points {
            Points::Line(points) => path(svg, points.iter().filter_map(place), colour, ""),
            Points::Dashed(points) => {
                let dashes = " stroke-dasharray=\"5 3\"";
                path(svg, points.iter().filter_map(place), colour, dashes);
            }
            Points::Dots(points) => {
                let dots = points.iter().filter_map(place).map(|(x, y)| dot(x, y, colour));
                dots.for_each(|dot| put(svg, format_args!("{dot}")));
            }
            Points::Crosses(points) => {
                let crosses = points.iter().filter_map(place).map(|(x, y)| cross(x, y, colour));
                crosses.for_each(|cross| put(svg, format_args!("{cross}")));
            }
            Points::Bars(points) => {
                for (a, low, high) in points.iter().filter(|(_, _, high)| y.shows(*high)) {
                    let bar = bar(x.at(*a), y.at(*high), y.at(y.least(*low)), colour);
                    put(svg, format_args!("{bar}"));
                }
            }
            Points::Marks(moments) => {
                for moment in moments {
                    let at = x.at(*moment);
                    put(
                        svg,
                        format_args!(
                            "<path d=\"M{at:.1} {TOP}v{PLOT_HEIGHT}\" stroke=\"{colour}\" opacity=\"0.5\"/>"
                        ),
                    );
                }
            }
        }
    }
}

impl Points {
    fn xs(&self) -> Vec<f64> {
        match self {
            Self::Line(points) | Self::Dashed(points) => points.iter().map(|p| p.0).collect(),
            Self::Dots(points) | Self::Crosses(points) => points.iter().map(|p| p.0).collect(),
            Self::Bars(points) => points.iter().map(|p| p.0).collect(),
            Self::Marks(moments) => moments.clone(),
        }
    }

    fn ys(&self) -> Vec<f64> {
        match self {
            Self::Line(points) | Self::Dashed(points) => points.iter().map(|p| p.1).collect(),
            Self::Dots(points) | Self::Crosses(points) => points.iter().map(|p| p.1).collect(),
            Self::Bars(points) => points.iter().flat_map(|p| [p.1, p.2]).collect(),
            Self::Marks(_) => Vec::new(),
        }
    }
}

/// Values → places on the paper.
struct Scale {
    low: f64,
    high: f64,
    ends: (f64, f64),
    is_log: bool,
    step: f64,
}

impl Scale {
    fn linear(values: impl Iterator<Item = f64>, ends: (f64, f64), from_zero: bool) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if from_zero && low > 0.0 {
            low = 0.0;
        }
        if high <= low {
            high = low + 1.0;
        }
        let step = nice_step((high - low) / 5.0);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high, ends, is_log: false, step }
    }

    fn log(values: impl Iterator<Item = f64>, ends: (f64, f64)) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value.log10()), high.max(value.log10()));
        }
        if low > high {
            (low, high) = (-1.0, 0.0);
        }
        let (low, high) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        Self { low, high, ends, is_log: true, step: 1.0 }
    }

    fn at(&self, value: f64) -> f64 {
        let value = if self.is_log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        self.ends.0 + share * (self.ends.1 - self.ends.0)
    }

    /// Whether there is a place for it.
    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (!self.is_log || value > 0.0)
    }

    /// The value, or the lowest that there is a place for.
    fn least(&self, value: f64) -> f64 {
        if self.is_log { value.max(10_f64.powf(self.low)) } else { value }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round() as i32;
        let decimals = (-self.step.log10().floor()).clamp(0.0, 9.0) as usize;
        let tick = |i: i32| {
            let value = self.low + f64::from(i) * self.step;
            if self.is_log {
                let decimals = (-value).max(0.0) as usize;
                (10_f64.powf(value), format!("{:.decimals$}", 10_f64.powf(value)))
            } else {
                (value, format!("{value:.decimals$}"))
            }
        };
        (0..=count).map(tick).collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= least * 0.999);
    step.unwrap_or(10.0) * power
}

fn path(svg: &mut String, points: impl Iterator<Item = (f64, f64)>, colour: &str, dashes: &str) {
    let mut steps = String::new();
    for (x, y) in points {
        let to = if steps.is_empty() { 'M' } else { 'L' };
        _ = write!(steps, "{to}{x:.1} {y:.1}");
    }
    put(
        svg,
        format_args!(
            "<path d=\"{steps}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes}/>"
        ),
    );
}

fn dot(x: f64, y: f64, colour: &str) -> String {
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")
}

fn cross(x: f64, y: f64, colour: &str) -> String {
    let (left, top) = (x - 4.0, y - 4.0);
    format!(
        "<path d=\"M{left:.1} {top:.1}l8 8m0 -8l-8 8\" stroke=\"{colour}\" stroke-width=\"1.6\"/>"
    )
}

fn bar(x: f64, top: f64, bottom: f64, colour: &str) -> String {
    let left = x - 3.0;
    format!(
        "<path d=\"M{left:.1} {top:.1}h6m-3 0V{bottom:.1}m-3 0h6\" fill=\"none\" stroke=\"{colour}\" opacity=\"0.6\"/>"
    )
}

fn put(svg: &mut String, markup: std::fmt::Arguments<'_>) {
    // Writing into a string never fails.
    _ = writeln!(svg, "{markup}");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Panels side by side, at most.
const ACROSS: usize = 3;
/// Of a panel, in pixels.
const WIDTH: f64 = 440.0;
const LEFT: f64 = 66.0;
const TOP: f64 = 34.0;
const PLOT_WIDTH: f64 = 350.0;
const PLOT_HEIGHT: f64 = 240.0;
const BOTTOM: f64 = 52.0;
const HEAD: f64 = 40.0;
const LEGEND_LINE: f64 = 17.0;
const LEGEND_ACROSS: usize = 2;
/// Told apart with any colour vision (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

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
    fn steps_are_round_numbers() {
        assert_eq!([0.9, 1.0, 1.7, 3.0, 7.0].map(nice_step), [1.0, 1.0, 2.0, 5.0, 10.0]);
        assert!((nice_step(0.03) - 0.05).abs() < 1e-12);
        let scale = Scale::linear([3.0, 47.0].into_iter(), (0.0, 100.0), true);
        assert_eq!((scale.low, scale.high, scale.at(25.0)), (0.0, 50.0, 50.0));
        let labels: Vec<String> = scale.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "10", "20", "30", "40", "50"]);
    }

    #[test]
    fn an_empty_plot_is_drawn_too() {
        assert!(Plot::default().to_svg("").ends_with("</svg>\n"));
        assert!(Plot::of([Panel::new("", "", "").log()]).to_svg("").contains("</g>"));
    }
}

//! Draws panels as SVG markup.

use std::fmt::Write as _;

use super::legend;
use super::scale::Scale;
use super::signs::{PLOT_WIDTH, bar, cross, dot, escaped, put};
use super::style::COLOURS;
use super::{Panel, Points, Series};

impl Panel {
    pub(super) fn draw(&self, svg: &mut String) {
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

    /// Height of axis, names and legend below the plot, in pixels.
    pub(super) fn below(&self) -> f64 {
        let lines = self.legend_lines();
        self.axis_height() + lines as f64 * LEGEND_LINE + 10.0
    }

    /// Pixels from the axis to the legend.
    fn axis_height(&self) -> f64 {
        // Names of categories are written at a slant.
        let lines = self.categories.iter().flat_map(|name| two_lines(name));
        let longest = lines.map(|line| line.chars().count()).max();
        longest.map_or(BOTTOM, |chars| BOTTOM + 6.0 + 4.2 * chars as f64)
    }

    fn draw_axes(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
        for (value, label) in y.ticks() {
            let at = y.at(value);
            put(
                svg,
                format_args!(
                    "<path d=\"M{LEFT} {at:.1}H{right}\" class=\"grid\"/>\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                    LEFT - 6.0,
                    at + 4.0
                ),
            );
        }
        for (place, name) in self.categories.iter().enumerate() {
            let (at, y) = (x.at(place as f64), bottom + 14.0);
            put(svg, format_args!("<path d=\"M{at:.1} {bottom}v4\" class=\"axis\"/>"));
            for (line, text) in two_lines(name).into_iter().enumerate() {
                put(
                    svg,
                    format_args!(
                        "<text transform=\"translate({:.1} {y}) rotate(-38)\" y=\"{}\" text-anchor=\"end\">{}</text>",
                        at + 4.0,
                        line as f64 * 13.0,
                        escaped(text)
                    ),
                );
            }
        }
        let ticks = if self.categories.is_empty() { x.ticks() } else { Vec::new() };
        for (value, label) in ticks {
            let at = x.at(value);
            put(
                svg,
                format_args!(
                    "<path d=\"M{at:.1} {bottom}v4\" class=\"axis\"/>\
                     <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                    bottom + 17.0
                ),
            );
        }
        put(
            svg,
            format_args!(
                "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" class=\"axis\"/>\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
                 <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
                LEFT + PLOT_WIDTH / 2.0,
                bottom + self.axis_height() - 16.0,
                escaped(self.x),
                TOP + PLOT_HEIGHT / 2.0,
                escaped(self.y)
            ),
        );
    }

    fn draw_legend(&self, svg: &mut String) {
        let top = TOP + PLOT_HEIGHT + self.axis_height();
        for (line, entries) in legend::lines(&self.series).iter().enumerate() {
            let y = top + 12.0 + line as f64 * LEGEND_LINE;
            for (x, entry) in entries {
                entry.draw(svg, LEFT_OF_LEGEND + x, y);
            }
        }
    }

    fn legend_lines(&self) -> usize {
        legend::lines(&self.series).len()
    }

    fn x_scale(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| series.points.xs());
        let ends = (LEFT, LEFT + PLOT_WIDTH);
        if !self.categories.is_empty() {
            return Scale::places(self.categories.len(), ends);
        }
        if self.is_log_x { Scale::log(values, ends) } else { Scale::linear(values, ends, false) }
    }

    fn y_scale(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| series.points.ys());
        let ends = (TOP + PLOT_HEIGHT, TOP);
        if self.is_log { Scale::log(values, ends) } else { Scale::linear(values, ends, true) }
    }
}

impl Series {
    pub(super) fn colour(&self) -> usize {
        self.colour % COLOURS
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
                    let bar = bar(x.at(*a), y.at(*high), y.at(y.min(*low)), colour);
                    put(svg, format_args!("{bar}"));
                }
            }
            Points::Marks(moments) => {
                for moment in moments {
                    let at = x.at(*moment);
                    put(
                        svg,
                        format_args!(
                            "<path d=\"M{at:.1} {TOP}v{PLOT_HEIGHT}\" class=\"s{colour}\" opacity=\"0.5\"/>"
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

fn path(svg: &mut String, points: impl Iterator<Item = (f64, f64)>, colour: usize, dashes: &str) {
    let mut steps = String::new();
    for (x, y) in points {
        let to = if steps.is_empty() { 'M' } else { 'L' };
        _ = write!(steps, "{to}{x:.1} {y:.1}");
    }
    put(
        svg,
        format_args!(
            "<path d=\"{steps}\" fill=\"none\" class=\"s{colour}\" stroke-width=\"1.6\"{dashes}/>"
        ),
    );
}

/// The name of a category; a long one is split into two lines, so that it fits into the picture.
fn two_lines(name: &str) -> Vec<&str> {
    let middle = name.len() / 2;
    let spaces = name.match_indices(' ').map(|(place, _)| place);
    let cut = spaces.min_by_key(|place| place.abs_diff(middle));
    match cut {
        Some(place) if name.chars().count() > LONGEST_NAME => {
            vec![&name[..place], &name[place + 1..]]
        }
        _ => vec![name],
    }
}

/// Characters of a category's name that fit into one line.
const LONGEST_NAME: usize = 16;

/// Maximum number of panels side by side.
pub(super) const ACROSS: usize = 3;
/// Of a panel, in pixels.
pub(super) const WIDTH: f64 = 448.0;
pub(super) const LEFT: f64 = 74.0;
pub(super) const TOP: f64 = 34.0;
pub(super) const PLOT_HEIGHT: f64 = 240.0;
const BOTTOM: f64 = 52.0;
/// The legend may begin below the names of the y axis.
const LEFT_OF_LEGEND: f64 = 20.0;
pub(super) const HEAD: f64 = 40.0;
pub(super) const LEGEND_LINE: f64 = 17.0;

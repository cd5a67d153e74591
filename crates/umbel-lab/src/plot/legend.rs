//! The legend of a panel: the meaning of each colour and each sign.
//!
//! Series of one colour whose names start alike ("n = 25, closed form", "n = 25, simulated") are
//! one entry with both signs. The meaning of the signs is explained once, if it is the same for
//! all.

use super::signs::{PLOT_WIDTH, bar, cross, dot, escaped, put};
use super::{Points, Series};

/// One entry: signs in one colour, and a name.
pub(super) struct Entry<'a> {
    /// `None` if the entry explains a sign for all colours.
    colour: Option<usize>,
    signs: Vec<&'a Points>,
    name: String,
}

/// Entries with their places, line by line.
pub(super) fn lines(series: &[Series]) -> Vec<Vec<(f64, Entry<'_>)>> {
    let mut lines: Vec<Vec<(f64, Entry<'_>)>> = Vec::new();
    let mut at = f64::INFINITY;
    for entry in entries(series) {
        let width = entry.width();
        if at + width > WIDTH {
            lines.push(Vec::new());
            at = 0.0;
        }
        if let Some(line) = lines.last_mut() {
            line.push((at, entry));
        }
        at += width;
    }
    lines
}

fn entries(series: &[Series]) -> Vec<Entry<'_>> {
    let Some(signs) = meanings(series) else {
        let alone = |series| Entry::of(series, series.name.clone());
        return series.iter().map(alone).collect();
    };
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for series in series {
        let (stem, _) = parts(&series.name);
        let same = entries.iter_mut().find(|entry| {
            let is_named_so = entry.name == stem || stem.is_empty();
            is_named_so && entry.colour == Some(series.colour())
        });
        match same {
            Some(entry) => entry.signs.push(&series.points),
            None => entries.push(Entry::of(series, stem.to_owned())),
        }
    }
    for (points, name) in signs {
        entries.push(Entry { colour: None, signs: vec![points], name: name.to_owned() });
    }
    entries
}

/// The meaning of each kind of sign, if several series have the same kind; otherwise every series
/// is an entry of its own.
fn meanings(series: &[Series]) -> Option<Vec<(&Points, &str)>> {
    let mut meanings: Vec<(&Points, &str)> = Vec::new();
    let (mut stems, mut is_repeated) = (Vec::new(), false);
    for series in series {
        let (stem, kind) = parts(&series.name);
        let sign = &series.points;
        if kind.is_empty() {
            // A line whose name does not say what it is: the closed form, if dots are simulated.
            stems.push((series.colour(), stem));
            continue;
        }
        if !stem.is_empty() {
            stems.push((series.colour(), stem));
        }
        match meanings.iter().find(|(other, _)| is_same(other, sign)) {
            Some((_, other)) if *other != kind => return None,
            Some(_) => is_repeated = true,
            None => meanings.push((sign, kind)),
        }
    }
    stems.dedup();
    let is_worth_it = is_repeated && stems.len() > 1 && series.len() > stems.len();
    is_worth_it.then_some(meanings)
}

/// Splits "n = 25, closed form" into subject and kind of number; a name that is only a kind belongs
/// to the subject before it.
fn parts(name: &str) -> (&str, &str) {
    if KINDS.contains(&name) {
        return ("", name);
    }
    match name.rsplit_once(", ") {
        Some((stem, kind)) if KINDS.contains(&kind) => (stem, kind),
        _ => (name, ""),
    }
}

/// The kinds of numbers in a plot.
const KINDS: [&str; 10] = [
    "closed form",
    "simulated",
    "independent hash functions",
    "umbel's positions",
    "1 + Σ f",
    "no filters",
    "p(u)",
    "equation 13",
    "equation 3",
    "measured",
];

fn is_same(a: &Points, b: &Points) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

impl<'a> Entry<'a> {
    fn of(series: &'a Series, name: String) -> Self {
        Self { colour: Some(series.colour()), signs: vec![&series.points], name }
    }

    /// Approximate width in pixels.
    fn width(&self) -> f64 {
        SIGN + 7.3 * self.name.chars().count() as f64 + 16.0
    }

    pub(super) fn draw(&self, svg: &mut String, x: f64, y: f64) {
        let colour = self.colour.unwrap_or(super::style::GREY);
        let middle = y - 4.0;
        for points in &self.signs {
            let sign = match points {
                Points::Line(_) => {
                    format!(
                        "<path d=\"M{x:.0} {middle}h20\" class=\"s{colour}\" stroke-width=\"2\"/>"
                    )
                }
                Points::Dashed(_) => format!(
                    "<path d=\"M{x:.0} {middle}h20\" class=\"s{colour}\" stroke-width=\"2\" stroke-dasharray=\"5 3\"/>"
                ),
                Points::Dots(_) => dot(x + 10.0, middle, colour),
                Points::Crosses(_) => cross(x + 10.0, middle, colour),
                Points::Bars(_) => bar(x + 10.0, middle - 5.0, middle + 5.0, colour),
                Points::Marks(_) => {
                    format!("<path d=\"M{} {}v12\" class=\"s{colour}\"/>", x + 10.0, middle - 6.0)
                }
            };
            put(svg, format_args!("{sign}"));
        }
        put(
            svg,
            format_args!("<text x=\"{:.0}\" y=\"{y}\">{}</text>", x + SIGN, escaped(&self.name)),
        );
    }
}

/// Pixels of a sign and the space after it.
const SIGN: f64 = 26.0;
/// Pixels of a line.
const WIDTH: f64 = PLOT_WIDTH + 66.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, colour: usize, points: Points) -> Series {
        Series { name: name.to_owned(), colour, points }
    }

    fn names(series: &[Series]) -> Vec<String> {
        entries(series).into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn what_signs_mean_is_said_once() {
        let all = [
            series("n = 25, closed form", 0, Points::Line(vec![])),
            series("n = 25, simulated", 0, Points::Dots(vec![])),
            series("n = 75, closed form", 1, Points::Line(vec![])),
            series("n = 75, simulated", 1, Points::Dots(vec![])),
        ];
        assert_eq!(names(&all), ["n = 25", "n = 75", "closed form", "simulated"]);
        let bare = [
            series("uniform", 0, Points::Line(vec![])),
            series("simulated", 0, Points::Dots(vec![])),
            series("normal", 1, Points::Line(vec![])),
            series("simulated", 1, Points::Dots(vec![])),
        ];
        assert_eq!(names(&bare), ["uniform", "normal", "simulated"]);
    }

    #[test]
    fn entries_that_have_nothing_in_common_stay_apart() {
        let all = [
            series("closed form", 0, Points::Line(vec![])),
            series("simulated", 1, Points::Dots(vec![])),
        ];
        assert_eq!(names(&all), ["closed form", "simulated"]);
    }

    #[test]
    fn entries_never_overlap() {
        let long = "a name that takes nearly half of the whole line of the legend";
        let all = [long, "short", long, "b"].map(|name| series(name, 0, Points::Line(vec![])));
        for line in lines(&all) {
            for pair in line.windows(2) {
                assert!(pair[0].0 + pair[0].1.width() <= pair[1].0 + 1e-9);
            }
            assert!(line.iter().all(|(x, _)| *x < WIDTH));
        }
    }
}

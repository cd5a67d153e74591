//! The first screen: what was found, in ten lines, and the most surprising figure.
//!
//! Each line is about one claim and takes its numbers from it, so that no line can contradict the
//! report. Only the choice of claims is written here.

use super::{escaped, section};
use crate::report::{Claim, Report};

/// A line: experiment, the start of a claim of it, and the words around its numbers:
/// `{stated}`, `{formula}`, `{simulated}`.
struct Line(&'static str, &'static str, &'static str);

const LINES: [Line; 10] = [
    Line(
        "zhu-table-2",
        "k = 8, 100 deleted",
        "The papers' false negative rate is not what its name says: where theorem 3 gives {stated}, \
         the replica denies {simulated} of the elements that exist.",
    ),
    Line(
        "zhu-fig-10",
        "25 elements: with an overall false rate",
        "Under the papers' update protocol with a target of {stated}, {simulated} of the elements are \
         unknown to the other node when the first update is sent.",
    ),
    Line(
        "zhu-fig-6",
        "m/n = 8, δ1 = 5",
        "“More than 50 % of the false positive rate” at 5 % dirty ones holds for 12 and 16 bits an \
         element, not for 8: {formula}.",
    ),
    Line(
        "zhu-table-1",
        "the Estimated column",
        "Every printed digit of the {stated} estimated rows of table 1 follows from equation 12.",
    ),
    Line(
        "dbf-fig-12",
        "minimum Zipf",
        "Dynamic filters save even more memory than paper 4 says: {simulated} for minimum Zipf, where \
         it says {stated}.",
    ),
    Line(
        "dbf-table-1",
        "removal through",
        "Paper 4 leaves keys behind that several components claim; a catalogue that remembers the \
         component leaves {simulated}.",
    ),
    Line(
        "dbf-unbounded",
        "a standard filter keeps the right limit up to n0 ln",
        "A standard filter that is rebuilt where paper 4 says has a rate of {simulated} there, not {stated}.",
    ),
    Line(
        "ro-fig-10",
        "times a traditional filter, at most",
        "Paper 5's compressed filters take {formula} times a traditional one, not {stated}: its \
         numbers agree with an entropy in nats.",
    ),
    Line(
        "ro-overlay",
        "ABF: the receiver-oriented design has a higher",
        "Receiver-oriented design is worth it: with aggregated filters queries succeed {simulated} \
         times as often as with traditional ones.",
    ),
    Line(
        "ro-overlay",
        "CUBF: the receiver-oriented design has a higher",
        "With cumulative filters they do not: {simulated} times as often.",
    ),
];

/// The experiment whose plot is on the first screen.
const SURPRISE: &str = "zhu-table-2";

/// The lines and the figure, as far as the reports have them.
pub(super) fn html(reports: &[Report]) -> String {
    let mut html = String::from("<h2 id=\"found\">What was found</h2>\n<ol class=\"found\">\n");
    for line in &LINES {
        if let Some(claim) = line.claim(reports) {
            let name = line.0;
            html.push_str(&format!(
                "<li>{} <a href=\"#{name}\">{name}</a></li>\n",
                line.sentence(claim)
            ));
        }
    }
    html.push_str("</ol>\n");
    if let Some(report) = reports.iter().find(|report| report.name() == SURPRISE) {
        html.push_str(&format!(
            "<figure class=\"surprise\">\n{}<figcaption>The most surprising figure: as objects are \
             deleted, the rate of table 2 falls to almost nothing, while the replicas go on \
             denying half of what exists (dashed).</figcaption>\n</figure>\n",
            report.to_inline_svgs()
        ));
    }
    html
}

impl Line {
    fn claim<'a>(&self, reports: &'a [Report]) -> Option<&'a Claim> {
        let report = reports.iter().find(|report| report.name() == self.0)?;
        report.claims().iter().find(|claim| claim.claim().starts_with(self.1))
    }

    fn sentence(&self, claim: &Claim) -> String {
        let number = |number: Option<f64>| {
            let shown = number.map_or_else(String::new, |number| section::shown(number, claim));
            format!("<b>{shown}</b>")
        };
        escaped(self.2)
            .replace("{stated}", &number(claim.stated()))
            .replace("{formula}", &number(claim.formula()))
            .replace("{simulated}", &number(claim.simulated()))
    }
}

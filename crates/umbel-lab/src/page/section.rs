//! The section of one paper, with the sections of its experiments.

use super::papers::Paper;
use super::{Tally, bar, both, escaped, markdown};
use crate::report::{Author, Claim, Column, Origin, Report, Table, Verdict};

/// What the headers of the experiments' modules say, by name.
const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// The header of an experiment's module, as Markdown; empty if there is none.
pub(super) fn header_of(name: &str) -> &'static str {
    let found = HEADERS.iter().find(|(experiment, _)| *experiment == name);
    found.map_or("", |(_, header)| header)
}

/// A paper with its mistakes and all of its experiments.
pub(super) fn paper(paper: &Paper, reports: &[&Report]) -> String {
    let mut html = format!(
        "<section class=\"paper\" id=\"{}\">\n<h2>{}</h2>\n",
        paper.anchor(),
        escaped(paper.title)
    );
    if reports.is_empty() {
        html.push_str(
            "<p class=\"source\">No table or figure of its own is made again here.</p>\n",
        );
    } else {
        let tally = Tally::of(reports.iter().copied());
        html.push_str(&format!(
            "<p class=\"source\">{} claims of the paper: {}. {} of ours: {}.</p>\n",
            tally.papers.total(),
            tally.papers,
            tally.ours.total(),
            tally.ours
        ));
        html.push_str(&bar(both(tally)));
    }
    if paper.has_text() {
        html.push_str(&format!(
            "<details class=\"slips\" open>\n<summary>Symbols, slips and what the lab found</summary>\n{}</details>\n",
            markdown::to_html(paper.text())
        ));
    }
    for report in reports {
        html.push_str(&experiment(report));
    }
    html.push_str("</section>\n");
    html
}

fn experiment(report: &Report) -> String {
    let mut html = format!(
        "<article id=\"{name}\">\n<h3><a href=\"#{name}\">{name}</a> {}</h3>\n<p class=\"source\">{}</p>\n",
        escaped(report.title()),
        escaped(report.source()),
        name = report.name(),
    );
    html.push_str(&format!("<div class=\"about\">\n{}</div>\n", about(header_of(report.name()))));
    html.push_str(&format!("<figure>\n{}</figure>\n", report.to_inline_svgs()));
    html.push_str(&claims(report.claims()));
    html.push_str(&table(report.table()));
    html.push_str("</article>\n");
    html
}

/// The header without its first sentence, which is the title, and with its parts marked.
fn about(header: &str) -> String {
    let body = header.split_once("\n\n").map_or("", |(_, body)| body);
    let html = markdown::to_html(body);
    ["The paper:", "Ours:", "Left open:"].iter().fold(html, |html, part| {
        html.replace(&format!("<p>{part}"), &format!("<p><b class=\"part\">{part}</b>"))
    })
}

fn claims(claims: &[Claim]) -> String {
    let mut html = String::from(
        "<div class=\"wide\"><table class=\"claims\">\n<thead><tr><th>verdict</th><th>claim</th><th>stated</th>\
         <th>formula</th><th>simulated</th><th></th></tr></thead>\n<tbody>\n",
    );
    for claim in claims {
        let (verdict, class) = (claim.verdict().name(), verdict_class(claim));
        let number =
            |number: Option<f64>| number.map_or_else(|| "–".to_owned(), |n| shown(n, claim));
        html.push_str(&format!(
            "<tr class=\"claim {class}\"><td><span class=\"verdict {class}\">{verdict}</span></td><td>{}{}</td>\
             <td data-name=\"stated\">{}</td><td data-name=\"formula\">{}</td><td data-name=\"simulated\">{}</td>\
             <td class=\"unit\">{}</td></tr>\n",
            statement(claim),
            reason(claim),
            number(claim.stated()),
            number(claim.formula()),
            number(claim.simulated()),
            if claim.unit() == "%" { "" } else { claim.unit() },
        ));
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// The CSS class of a verdict.
const fn verdict_class(claim: &Claim) -> &'static str {
    match claim.verdict() {
        Verdict::TooRare => "rare",
        other => other.name(),
    }
}

/// The claim, after the paper's own words or marked as ours.
pub(super) fn statement(claim: &Claim) -> String {
    let claimed = escaped(claim.claim());
    match (claim.author(), claim.quote()) {
        (Author::Ours, _) => format!("<span class=\"ours\">ours</span> {claimed}"),
        (Author::Paper, "") => claimed,
        (Author::Paper, quote) => format!("<q>{}</q> {claimed}", escaped(quote)),
    }
}

/// The numbers of a claim in one line.
pub(super) fn numbers(claim: &Claim) -> String {
    let numbers = [
        ("stated", claim.stated()),
        ("formula", claim.formula()),
        ("simulated", claim.simulated()),
    ];
    let texts: Vec<String> = numbers
        .into_iter()
        .filter_map(|(name, number)| Some(format!("{name} <b>{}</b>", shown(number?, claim))))
        .collect();
    let unit = if ["%", ""].contains(&claim.unit()) { "" } else { claim.unit() };
    format!("<span class=\"numbers\">{} {}</span>", texts.join(", "), escaped(unit))
}

/// A number of a claim, with a percent sign if that is its unit.
pub(super) fn shown(number: f64, claim: &Claim) -> String {
    let sign = if claim.unit() == "%" { " %" } else { "" };
    format!("{}{sign}", digits(number))
}

/// Formats a number with four digits, which is enough here; the table and the JSON have all of
/// them.
fn digits(number: f64) -> String {
    if number == 0.0 || number.abs() >= 1000.0 {
        return format!("{number}");
    }
    let digits = (3 - number.abs().log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{number:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned()
}

/// Note, tolerance and seeds of a claim, in small print.
pub(super) fn reason(claim: &Claim) -> String {
    let mut parts = Vec::new();
    if !claim.note().is_empty() {
        parts.push(escaped(claim.note()));
    } else if claim.verdict() == Verdict::Fails {
        parts.push("the numbers are further apart than the tolerance".to_owned());
    }
    if let Some(tolerance) = claim.tolerance().filter(|tolerance| *tolerance > 0.0) {
        parts.push(format!("tolerance {}", shown(tolerance, claim)));
    }
    if claim.seeds() > 0 {
        parts.push(format!("{} seeds", claim.seeds()));
    }
    if parts.is_empty() { String::new() } else { format!("<small>{}</small>", parts.join(" · ")) }
}

fn table(table: &Table) -> String {
    let rows = table.rows().len();
    let open = if rows <= 12 { " open" } else { "" };
    let mut html = format!(
        "<details{open}>\n<summary>{rows} rows</summary>\n<div class=\"wide\"><table class=\"data\">\n<thead><tr>"
    );
    for column in table.columns() {
        html.push_str(&format!(
            "<th class=\"{}\">{}</th>",
            class(column),
            column.name().replace('_', " ").replace(" percent", " %")
        ));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in table.rows() {
        html.push_str("<tr>");
        for (column, cell) in table.columns().iter().zip(row) {
            let text = if cell.is_text() { " text" } else { "" };
            let shown = escaped(&column.show(cell));
            html.push_str(&format!("<td class=\"{}{text}\">{shown}</td>", class(column)));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n</details>\n");
    html
}

const fn class(column: &Column) -> &'static str {
    match column.origin() {
        Origin::Setting => "setting",
        Origin::Paper => "stated",
        Origin::Formula => "formula",
        Origin::Simulated => "simulated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        assert_eq!(digits(0.000_946_77), "0.0009468");
        assert_eq!(digits(101.234), "101.2");
        assert_eq!(digits(5.0), "5");
        assert_eq!(digits(100.0), "100");
        assert_eq!(digits(0.0), "0");
        assert_eq!(digits(-2.5), "-2.5");
        assert_eq!(digits(30_720.0), "30720");
    }

    #[test]
    fn the_parts_of_a_header_are_marked() {
        let html = about("Title.\n\nThe paper: `f`.\n\nLeft open: it.\n");
        assert_eq!(
            html,
            "<p><b class=\"part\">The paper:</b> <code>f</code>.</p>\n<p><b class=\"part\">Left open:</b> it.</p>\n"
        );
    }
}

//! The report of the whole lab: one HTML page with every experiment of every paper.
//!
//! It shows what the paper says, the closed form, the simulation, a verdict for each claim, and the
//! mistakes in the papers. The page is self-contained: it includes pictures and style, fetches
//! nothing and runs no script. It can be printed, and has a light and a dark theme.
//!
//! Texts are not written here. The description of an experiment is the header of its module; what
//! is wrong in a paper is its entry in `docs/papers.md`. A new experiment appears automatically.
//!
//! Always true: the same reports give the same bytes.

mod failures;
mod highlights;
mod markdown;
mod papers;
mod section;
mod tally;

pub use tally::{Counts, Tally};

use crate::report::Report;
use papers::{PAPERS, Paper, paper_of};

/// The page. `how` says how it was made: plan and seed.
#[must_use]
pub fn page(reports: &[Report], how: &str) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>umbel: the papers, put to the test</title>\n<style>\n{}\n{}</style>\n</head>\n<body>\n",
        include_str!("style.css"),
        crate::plot::STYLE,
    );
    html.push_str(&head(reports, how));
    html.push_str("<main>\n");
    html.push_str(&failures::section(reports));
    for paper in groups(reports) {
        let mine: Vec<&Report> = of(reports, paper).collect();
        html.push_str(&section::paper(paper, &mine));
    }
    html.push_str("</main>\n<footer>Made by <code>umbel lab report</code>. The same seed gives the same bytes.</footer>\n</body>\n</html>\n");
    html
}

/// The papers that have something to show.
fn groups(reports: &[Report]) -> impl Iterator<Item = &'static Paper> {
    PAPERS.iter().filter(move |paper| paper.has_text() || of(reports, paper).next().is_some())
}

fn of<'a>(reports: &'a [Report], paper: &'static Paper) -> impl Iterator<Item = &'a Report> {
    reports.iter().filter(move |report| paper_of(report.source()).number == paper.number)
}

/// Title, what was found, counts and contents.
fn head(reports: &[Report], how: &str) -> String {
    let tally = Tally::of(reports);
    let mut html = format!(
        "<header>\n<p class=\"eyebrow\">umbel lab</p>\n<h1>The papers, put to the test</h1>\n\
         <p class=\"lead\">Every table and figure of the papers that umbel stands on, made again: \
         what the paper says, what its formula gives, what real filters do, and a verdict on every \
         claim. Nothing is tuned.</p>\n\
         <p class=\"tally\"><strong>{} claims of the papers:</strong> {}.</p>\n{}\
         <p class=\"tally\"><strong>{} of ours:</strong> {}.</p>\n{}{}\
         <p class=\"how\">{}</p>\n<nav>\n<h2>Contents</h2>\n<table class=\"contents\">\n",
        tally.papers.total(),
        tally.papers,
        bar(tally.papers),
        tally.ours.total(),
        tally.ours,
        bar(tally.ours),
        highlights::html(reports),
        escaped(how),
    );
    for paper in groups(reports) {
        html.push_str(&format!(
            "<tr class=\"group\"><th colspan=\"3\"><a href=\"#{}\">{}</a></th></tr>\n",
            paper.anchor(),
            escaped(paper.title)
        ));
        for report in of(reports, paper) {
            html.push_str(&format!(
                "<tr><td><a href=\"#{name}\">{name}</a></td><td>{}</td><td class=\"mini\">{}</td></tr>\n",
                escaped(report.title()),
                bar(both(Tally::of([report]))),
                name = report.name(),
            ));
        }
    }
    html.push_str("</table>\n</nav>\n</header>\n");
    html
}

/// The papers' claims and ours together, for a single bar.
fn both(Tally { papers, ours }: Tally) -> Counts {
    Counts {
        hold: papers.hold + ours.hold,
        fail: papers.fail + ours.fail,
        too_rare: papers.too_rare + ours.too_rare,
        unverifiable: papers.unverifiable + ours.unverifiable,
    }
}

/// The number of each verdict as one bar.
fn bar(counts: Counts) -> String {
    let part = |class: &str, word: &str, count: usize| match count {
        0 => String::new(),
        _ => format!(
            "<span class=\"{class}\" style=\"flex:{count}\" title=\"{count} {word}\">{count}</span>"
        ),
    };
    format!(
        "<div class=\"bar\">{}{}{}{}</div>\n",
        part("holds", "hold", counts.hold),
        part("fails", "do not hold", counts.fail),
        part("rare", "are too rare to tell", counts.too_rare),
        part("unverifiable", "cannot be verified", counts.unverifiable),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, Silent, find};

    fn reports() -> Vec<Report> {
        let plan = Plan::reduced(1);
        ["zhu-fig-2", "dbf-fig-8"]
            .map(|name| find(name).expect("an experiment").run(&plan, &Silent))
            .into()
    }

    #[test]
    fn a_page_stands_alone_and_counts_its_claims() {
        let reports = reports();
        let html = page(&reports, "seed 1");
        for outside in ["<script", "<link", "<img", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        // The only addresses are names of XML, never fetched, and links that a reader may follow.
        assert_eq!(html.matches("src=").count(), 0);
        let papers = Tally::of(&reports).papers;
        let all = reports.iter().map(|r| r.claims().len()).sum::<usize>();
        let counted = format!("{} claims of the papers:</strong> {papers}.", papers.total());
        assert!(html.contains(&counted), "{counted}");
        assert_eq!(html.matches("<tr class=\"claim ").count(), all);
        assert_eq!(html.matches("<svg ").count(), html.matches("</svg>").count());
        assert_eq!(html, page(&reports, "seed 1"));
    }

    #[test]
    fn every_experiment_finds_its_paper_and_its_header() {
        for experiment in crate::EXPERIMENTS {
            let paper = paper_of(experiment.source());
            assert!(paper.number > 0, "{}: {}", experiment.name(), experiment.source());
            assert!(!section::header_of(experiment.name()).is_empty(), "{}", experiment.name());
        }
    }
}

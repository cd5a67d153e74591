//! The section of all claims that fail: grouped by finding, the papers' claims before ours.

use super::papers::{PAPERS, paper_of};
use super::{escaped, section};
use crate::report::{Author, Claim, Report, Verdict};

/// Claims that fail for the same reason, in the order of the reports.
struct Group<'a> {
    finding: &'a str,
    claims: Vec<(&'a Report, &'a Claim)>,
}

/// All failed claims of an author in some reports, grouped by finding.
fn groups<'a>(reports: &[&'a Report], author: Author) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for report in reports {
        let fails = |claim: &&Claim| claim.verdict() == Verdict::Fails && claim.author() == author;
        for claim in report.claims().iter().filter(fails) {
            let finding = claim.finding();
            let same = groups.iter_mut().find(|g| !finding.is_empty() && g.finding == finding);
            match same {
                Some(group) => group.claims.push((report, claim)),
                None => groups.push(Group { finding, claims: vec![(report, claim)] }),
            }
        }
    }
    groups
}

/// The section.
pub(super) fn section(reports: &[Report]) -> String {
    let mut html = String::from(
        "<section id=\"failures\">\n<h2>What does not hold</h2>\n\
         <p>Claims that the formula or the simulation contradicts, with the reason. Claims that \
         fail for one reason stand together.</p>\n",
    );
    for paper in &PAPERS {
        let mine: Vec<&Report> =
            reports.iter().filter(|r| paper_of(r.source()).number == paper.number).collect();
        html.push_str(&list(paper.title, &groups(&mine, Author::Paper)));
    }
    let all: Vec<&Report> = reports.iter().collect();
    html.push_str(&list("Claims of ours", &groups(&all, Author::Ours)));
    html.push_str("</section>\n");
    html
}

fn list(title: &str, groups: &[Group<'_>]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let mut html = format!("<h3>{}</h3>\n<ul class=\"failures\">\n", escaped(title));
    for group in groups {
        html.push_str("<li>");
        match group.claims.as_slice() {
            [(report, claim)] => html.push_str(&one(report, claim)),
            several => {
                html.push_str(&format!(
                    "<details><summary>{} ({} claims)</summary>\n<ul>\n",
                    escaped(group.finding),
                    several.len()
                ));
                for (report, claim) in several {
                    html.push_str(&format!("<li>{}</li>\n", one(report, claim)));
                }
                html.push_str("</ul></details>");
            }
        }
        html.push_str("</li>\n");
    }
    html.push_str("</ul>\n");
    html
}

fn one(report: &Report, claim: &Claim) -> String {
    format!(
        "<a href=\"#{name}\">{name}</a> {}{}{}",
        section::statement(claim),
        section::numbers(claim),
        section::reason(claim),
        name = report.name(),
    )
}

//! The five papers: their titles, and what `docs/papers.md` says about each.

/// A paper.
#[derive(Debug)]
pub(super) struct Paper {
    /// 0 for experiments that belong to no paper.
    pub(super) number: u32,
    pub(super) title: &'static str,
}

pub(super) const PAPERS: [Paper; 6] = [
    Paper { number: 1, title: "Zhu and Jiang: update control of replicas (papers 1 and 3)" },
    Paper { number: 2, title: "Sahni: Bloom filters in differential files and routers (paper 2)" },
    Paper { number: 3, title: "Zhu and Jiang: false rate analysis (paper 3)" },
    Paper { number: 4, title: "Guo and others: dynamic Bloom filters (paper 4)" },
    Paper { number: 5, title: "Guo and others: receiver-oriented routing (paper 5)" },
    Paper { number: 0, title: "Beyond the papers" },
];

const DOCUMENT: &str = include_str!("../../papers.md");

impl Paper {
    pub(super) fn anchor(&self) -> String {
        format!("paper-{}", self.number)
    }

    /// Its entry in the document, as Markdown, without the heading.
    pub(super) fn text(&self) -> &'static str {
        let heading = format!("\n## Paper {}:", self.number);
        let Some(start) = DOCUMENT.find(&heading) else { return "" };
        let entry = &DOCUMENT[start + 1..];
        let body = entry.find('\n').map_or("", |end| &entry[end..]);
        body.find("\n## ").map_or(body, |end| &body[..end])
    }

    pub(super) fn has_text(&self) -> bool {
        !self.text().is_empty()
    }
}

/// The first paper that a source names: "paper 4, figure 1", "papers 1 and 3, table 2".
pub(super) fn paper_of(source: &str) -> &'static Paper {
    let after = source.split_once("paper").map_or("", |(_, after)| after);
    let digit = after.trim_start_matches('s').trim_start().chars().next();
    let number = digit.and_then(|digit| digit.to_digit(10)).unwrap_or(0);
    PAPERS.iter().find(|paper| paper.number == number).unwrap_or(&PAPERS[PAPERS.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_name_their_papers() {
        assert_eq!(paper_of("Zhu and Jiang, papers 1 and 3, table 2").number, 1);
        assert_eq!(paper_of("Guo and others, paper 4, figure 1").number, 4);
        assert_eq!(paper_of("ours").number, 0);
        assert_eq!(paper_of("paper 9").number, 0);
    }

    #[test]
    fn every_paper_has_its_slips_in_the_document() {
        for paper in &PAPERS[..5] {
            let text = paper.text();
            assert!(text.to_lowercase().contains("slips"), "{}: {text}", paper.number);
            assert!(!text.contains("\n## "), "{}", paper.number);
        }
        assert!(!PAPERS[5].has_text());
    }
}

//! A report for people: columns under stacked names, then the claims.

use super::{Author, Claim, Column, Origin, Report, Table, Verdict};

/// The whole report, or only what does not depend on the seed.
pub(super) fn report(report: &Report, simulated: bool) -> String {
    let mut text = format!("{}: {}\n{}\n\n", report.name, report.title, report.source);
    text.push_str(&table(report.table(), simulated));
    text.push('\n');
    if simulated {
        text.push_str(&verdicts(report.claims()));
    }
    for each in report.claims() {
        text.push_str(&claim(each, simulated));
    }
    text
}

fn table(table: &Table, simulated: bool) -> String {
    let shown: Vec<(usize, &Column)> = table
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| simulated || column.origin != Origin::Simulated)
        .collect();
    let names: Vec<Vec<&str>> =
        shown.iter().map(|(_, column)| column.name.split('_').collect()).collect();
    let height = names.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines: Vec<Vec<String>> = (0..height)
        .map(|line| {
            // Names end on the line directly above the numbers.
            let word = |length: usize| (line + length).checked_sub(height);
            names.iter().map(|name| word(name.len()).map_or("", |i| name[i]).to_owned()).collect()
        })
        .collect();
    lines.extend(
        table.rows.iter().map(|cells| {
            shown.iter().map(|(i, column)| cells[*i].shown(column.decimals)).collect()
        }),
    );
    if shown.is_empty() { String::new() } else { aligned(&lines) }
}

fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            row.push_str(&format!("  {cell:>width$}"));
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

fn verdicts(claims: &[Claim]) -> String {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict() == verdict).count();
    format!(
        "Claims: {} hold, {} fail, {} too rare to tell, {} unverifiable\n\n",
        count(Verdict::Holds),
        count(Verdict::Fails),
        count(Verdict::TooRare),
        count(Verdict::Unverifiable)
    )
}

fn claim(claim: &Claim, simulated: bool) -> String {
    let mut numbers = Vec::new();
    let mut add_line = |what: &str, number: Option<f64>| {
        let unit = if claim.unit() == "%" { " %" } else { "" };
        numbers.extend(number.map(|number| format!("{what} {number}{unit}")));
    };
    add_line("stated", claim.stated());
    add_line("formula", claim.formula());
    if simulated {
        add_line("simulated", claim.simulated());
        add_line("tolerance", claim.tolerance());
        if claim.seeds() > 0 {
            numbers.push(format!("{} seeds", claim.seeds()));
        }
    }
    if !numbers.is_empty() && !["%", ""].contains(&claim.unit()) {
        numbers.push(format!("in {}", claim.unit()));
    }
    let verdict = if simulated { claim.verdict().name() } else { "-" };
    let indent = if simulated { 16 } else { 4 };
    let mut text = wrapped(verdict, &statement(claim), indent);
    if !numbers.is_empty() {
        text.push_str(&wrapped("", &numbers.join(", "), indent));
    }
    if simulated && !claim.note().is_empty() {
        text.push_str(&wrapped("", claim.note(), indent));
    }
    text
}

/// The claim after the paper's own words, or marked as ours.
fn statement(claim: &Claim) -> String {
    match claim.author() {
        Author::Paper if claim.quote().is_empty() => claim.claim().to_owned(),
        Author::Paper => format!("\u{201c}{}\u{201d}: {}", claim.quote(), claim.claim()),
        Author::Ours => format!("ours: {}", claim.claim()),
    }
}

/// Words in lines of at most 100 characters, the first after `start`.
fn wrapped(start: &str, words: &str, indent: usize) -> String {
    const WIDTH: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    let mut line = format!("{:<indent$}", format!("  {start}"));
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + word.chars().count() >= WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_stay_within_the_width_and_under_each_other() {
        let text = wrapped("holds", &"word ".repeat(40), 14);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert!(text.starts_with("  holds       word word"));
        assert!(text.lines().nth(1).unwrap().starts_with("              word"));
    }
}

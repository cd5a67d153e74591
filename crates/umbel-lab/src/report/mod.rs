//! The result of an experiment: rows, and a verdict on every claim.
//!
//! A [`Report`] has four forms: aligned text, JSON, CSV and an SVG plot. Numbers are rounded once,
//! to the decimals of their column, so all four show the same digits.
//!
//! Column names end in their unit. Each column has an [`Origin`], which says where its numbers come
//! from; tests use it to know which columns must not change with the seed.

mod claim;
mod csv;
mod text;

pub(crate) use claim::Draft;
pub use claim::{Author, Claim, Verdict};

use serde::ser::{SerializeMap as _, SerializeStruct as _};
use serde::{Serialize, Serializer};

use crate::Experiment;
use crate::plot::Plot;

/// The result of an experiment.
#[derive(Debug, Clone)]
pub struct Report {
    name: &'static str,
    source: &'static str,
    title: &'static str,
    findings: Findings,
}

/// The part of a report that an experiment produces.
#[derive(Debug, Clone)]
pub(crate) struct Findings {
    pub(crate) table: Table,
    pub(crate) claims: Vec<Claim>,
    pub(crate) plot: Plot,
}

impl Report {
    pub(crate) fn new(experiment: &Experiment, findings: Findings) -> Self {
        let Experiment { name, source, title, .. } = *experiment;
        Self { name, source, title, findings }
    }

    /// A report without an experiment.
    #[cfg(test)]
    pub(crate) fn of_findings(findings: Findings) -> Self {
        Self { name: "a", source: "b, section 1", title: "c", findings }
    }

    /// Name of the experiment.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its place in the papers.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// What it shows.
    #[must_use]
    pub const fn title(&self) -> &'static str {
        self.title
    }

    /// The rows.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.findings.table
    }

    /// The claims of the papers' text, with verdicts.
    #[must_use]
    pub fn claims(&self) -> &[Claim] {
        &self.findings.claims
    }

    /// For people: rows in aligned columns, then the claims.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::report(self, true)
    }

    /// The same without simulated numbers: does not depend on the seed.
    #[must_use]
    pub fn closed_forms_to_text(&self) -> String {
        text::report(self, false)
    }

    /// For scripts: the keys `name`, `source`, `title`, `columns`, `rows` and `claims`.
    ///
    /// # Panics
    /// Never: all keys are strings and no number is infinite.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    /// For spreadsheets: the rows, with a line of column names.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::table(self.table())
    }

    /// The plots for a page that already has a title and their style.
    pub(crate) fn to_inline_svgs(&self) -> String {
        self.findings.plot.to_inline_svgs(self.title)
    }

    /// The plot.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.findings.plot.to_svg(self.title)
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = self.table();
        let names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
        let rows: Vec<_> =
            table.rows.iter().map(|cells| Row { columns: &table.columns, cells }).collect();
        let mut report = serializer.serialize_struct("Report", 6)?;
        report.serialize_field("name", self.name)?;
        report.serialize_field("source", self.source)?;
        report.serialize_field("title", self.title)?;
        report.serialize_field("columns", &names)?;
        report.serialize_field("rows", &rows)?;
        report.serialize_field("claims", self.claims())?;
        report.end()
    }
}

/// A row as an object: column name → value.
struct Row<'a> {
    columns: &'a [Column],
    cells: &'a [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(Some(self.cells.len()))?;
        for (column, cell) in self.columns.iter().zip(self.cells) {
            row.serialize_key(column.name)?;
            match cell {
                Cell::Count(count) => row.serialize_value(count),
                Cell::Number(number) => row.serialize_value(number),
                Cell::Text(text) => row.serialize_value(text),
                Cell::Nothing => row.serialize_value(&()),
            }?;
        }
        row.end()
    }
}

/// Rows under columns.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Adds a row, rounding numbers to the decimals of their column.
    pub(crate) fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for every column");
        let columns = self.columns.iter();
        let rounded = columns.zip(cells).map(|(column, cell)| cell.rounded(column.decimals));
        self.rows.push(rounded.collect());
    }

    /// The columns.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}

/// Where the numbers of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// What was set up.
    Setting,
    /// Printed in a paper.
    Paper,
    /// A closed form of `umbel::model`.
    Formula,
    /// Counted in a simulation: depends on the seed.
    Simulated,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    name: &'static str,
    decimals: usize,
    origin: Origin,
}

impl Column {
    pub(crate) const fn new(origin: Origin, name: &'static str, decimals: usize) -> Self {
        Self { name, decimals, origin }
    }

    /// Its name, in `snake_case`, unit last.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Where its numbers come from.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// A cell of this column, with its decimals.
    pub(crate) fn show(&self, cell: &Cell) -> String {
        cell.shown(self.decimals)
    }
}

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A whole number.
    Count(u64),
    /// A measured or computed number.
    Number(f64),
    /// A word.
    Text(&'static str),
    /// Unknown or not applicable.
    Nothing,
}

impl Cell {
    fn rounded(self, decimals: usize) -> Self {
        match self {
            Self::Number(number) if number.is_finite() => Self::Number(rounded(number, decimals)),
            Self::Number(_) => Self::Nothing,
            cell => cell,
        }
    }

    pub(crate) const fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// As it is shown, with the decimals of its column.
    fn shown(&self, decimals: usize) -> String {
        match self {
            Self::Count(count) => count.to_string(),
            Self::Number(number) => format!("{number:.decimals$}"),
            Self::Text(text) => (*text).to_owned(),
            Self::Nothing => String::new(),
        }
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&'static str> for Cell {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Cell {
    fn from(yes: bool) -> Self {
        Self::Text(if yes { "yes" } else { "no" })
    }
}

/// Rounds as printing does; never `-0`.
fn rounded(number: f64, decimals: usize) -> f64 {
    let printed = format!("{number:.decimals$}");
    printed.parse::<f64>().map_or(number, |parsed| parsed + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut table = Table::new([
            Column::new(Origin::Setting, "k", 0),
            Column::new(Origin::Formula, "rate_percent", 2),
            Column::new(Origin::Simulated, "found", 1),
        ]);
        table.push([6_u64.into(), 2.158_4.into(), true.into()]);
        table.push([11_u64.into(), f64::NAN.into(), (-0.04).into()]);
        let claims =
            vec![Claim::paper("so it is", "it is so").stated(2.0).formula(2.1).within(0.2)];
        let findings = Findings { table, claims, plot: Plot::default() };
        Report::of_findings(findings)
    }

    #[test]
    fn json_has_exactly_the_promised_keys_in_order() {
        assert_eq!(
            serde_json::to_string(&report()).unwrap(),
            "{\"name\":\"a\",\"source\":\"b, section 1\",\"title\":\"c\",\
             \"columns\":[\"k\",\"rate_percent\",\"found\"],\
             \"rows\":[{\"k\":6,\"rate_percent\":2.16,\"found\":\"yes\"},\
             {\"k\":11,\"rate_percent\":null,\"found\":0.0}],\
             \"claims\":[{\"claim\":\"it is so\",\"author\":\"paper\",\"quote\":\"so it is\",\
             \"finding\":\"\",\"unit\":\"%\",\"stated\":2.0,\"formula\":2.1,\
             \"simulated\":null,\"tolerance\":0.2,\"seeds\":0,\"verdict\":\"holds\",\"note\":\"\"}]}"
        );
    }

    #[test]
    fn text_and_csv_show_the_same_digits() {
        assert_eq!(report().to_csv(), "k,rate_percent,found\n6,2.16,yes\n11,,0.0\n");
        let text = report().to_text();
        assert!(text.contains("  6     2.16    yes\n"), "{text}");
        let closed = report().closed_forms_to_text();
        assert!(!closed.contains("found") && !closed.contains("holds"), "{closed}");
    }

    #[test]
    #[should_panic(expected = "a cell for every column")]
    fn a_row_that_does_not_fit_is_a_mistake() {
        Table::new([]).push([Cell::Nothing]);
    }
}

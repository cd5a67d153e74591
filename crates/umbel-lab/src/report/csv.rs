//! A table as comma-separated values (RFC 4180).

use super::Table;

pub(super) fn table(table: &Table) -> String {
    let names = table.columns.iter().map(|column| column.name.to_owned());
    let mut lines = vec![line(names)];
    for cells in &table.rows {
        let shown = table.columns.iter().zip(cells).map(|(c, cell)| cell.shown(c.decimals));
        lines.push(line(shown));
    }
    lines.concat()
}

fn line(values: impl Iterator<Item = String>) -> String {
    let mut line = values.map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

fn quoted(value: String) -> String {
    if value.contains([',', '"', '\n']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_quotes_are_quoted() {
        let values = ["plain", "a, b", "say \"so\""].map(str::to_owned);
        assert_eq!(line(values.into_iter()), "plain,\"a, b\",\"say \"\"so\"\"\"\n");
    }
}

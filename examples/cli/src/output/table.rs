//! Columns, as wide as what is in them. Colours don't count.

use console::{Alignment, measure_text_width, pad_str};

/// Rows of columns.
#[derive(Debug, Default)]
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    /// A table with a head.
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        let head = head.into_iter().map(|name| console::style(name).dim().to_string());
        Table(vec![head.collect()])
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.0.push(cells.into_iter().collect());
    }

    /// The lines; the last column is as long as it is.
    pub(crate) fn lines(&self) -> Vec<String> {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| self.0.iter().filter_map(move |row| row.get(column)).map(|cell| measure_text_width(cell));
        let widths: Vec<usize> = (0..columns).map(|column| width(column).max().unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| pad_str(cell, *width, Alignment::Left, None));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_in_line() {
        let mut table = Table::default();
        table.row(["a".into(), "bcd".into(), "e".into()]);
        table.row(["äöü".into(), String::new(), "f".into()]);
        assert_eq!(table.lines(), ["a    bcd  e", "äöü       f"]);
    }
}

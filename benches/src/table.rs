//! Rows of figures, as a table and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::machine;
use crate::stats::Spread;

/// One figure with its target.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// The floor's side, in words.
    pub(crate) floor: String,
    /// The kit's side, in words.
    pub(crate) kit: String,
    /// What is compared with the target.
    pub(crate) figure: Spread,
    pub(crate) unit: Unit,
    pub(crate) target: Target,
    /// The same by the clock, where CPU time is what counts.
    pub(crate) by_clock: Option<f64>,
    pub(crate) passed: bool,
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Ratio,
    Percent,
    Mebibytes,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// The distance from one, either way.
    Within(f64),
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Ratio => format!("{value:.2}"),
            Unit::Percent => format!("{value:.1} %"),
            Unit::Mebibytes => format!("{value:.1} MiB"),
        }
    }
}

impl Target {
    fn met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
            Target::Within(distance) => value.abs() <= distance,
        }
    }

    fn show(self, unit: Unit) -> String {
        match self {
            Target::AtLeast(least) => format!("at least {}", unit.show(least)),
            Target::AtMost(most) => format!("at most {}", unit.show(most)),
            Target::Within(distance) => format!("within {}", unit.show(distance)),
        }
    }
}

impl Row {
    pub(crate) fn new(name: &str, figure: Spread, unit: Unit, target: Target) -> Self {
        let passed = target.met(figure.median);
        let (name, floor, kit) = (name.to_owned(), String::new(), String::new());
        Row { name, floor, kit, figure, unit, target, by_clock: None, passed, notes: Vec::new() }
    }

    pub(crate) fn sides(mut self, floor: impl Into<String>, kit: impl Into<String>) -> Self {
        (self.floor, self.kit) = (floor.into(), kit.into());
        self
    }

    pub(crate) fn by_clock(mut self, clock: Spread) -> Self {
        self.by_clock = Some(clock.median);
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    fn cells(&self) -> [String; 7] {
        let show = |value| self.unit.show(value);
        [
            self.name.clone(),
            self.floor.clone(),
            self.kit.clone(),
            show(self.figure.median),
            format!("{} to {}", show(self.figure.lowest), show(self.figure.highest)),
            self.target.show(self.unit),
            if self.passed { "pass".to_owned() } else { "SHORT".to_owned() },
        ]
    }

    /// The row as it comes in.
    pub(crate) fn line(&self) -> String {
        let [name, floor, kit, figure, spread, target, passed] = self.cells();
        let clock = self.by_clock.map_or_else(String::new, |clock| format!(", {} by the clock", self.unit.show(clock)));
        format!("{passed}: {name}: {figure} ({spread}{clock}), {target}; floor {floor}, kit {kit}")
    }
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    machine: String,
    rounds: u32,
    /// Whether the work was a tenth of what the targets mean.
    quick: bool,
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(rows: Vec<Row>, rounds: u32, quick: bool) -> Self {
        Report { machine: machine::description(), rounds, quick, rows }
    }

    pub(crate) fn markdown(&self) -> String {
        const HEAD: [&str; 8] = ["figure", "floor", "kit", "median", "spread", "target", "", "by the clock"];
        let mut lines = vec![HEAD.map(str::to_owned)];
        for row in &self.rows {
            let [name, floor, kit, figure, spread, target, passed] = row.cells();
            let clock = row.by_clock.map_or_else(String::new, |clock| row.unit.show(clock));
            lines.push([name, floor, kit, figure, spread, target, passed, clock]);
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let cells: Vec<_> = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
            if index == 0 {
                let dashes: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
                let _ = writeln!(text, "| {} |", dashes.join(" | "));
            }
        }
        let quick = if self.quick { ", a tenth of the work" } else { "" };
        let _ = writeln!(text, "\n{}, median of {} rounds{quick}.", self.machine, self.rounds);
        for row in &self.rows {
            for note in &row.notes {
                let _ = writeln!(text, "{}: {note}", row.name);
            }
        }
        text
    }
}

//! Medians and spreads.

use serde::Serialize;

/// The middle of some figures, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

impl Spread {
    /// Of at least one figure.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let half = figures.len() / 2;
        let median = match figures.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => figures[half],
            _ => f64::midpoint(figures[half - 1], figures[half]),
        };
        let lowest = figures.first().copied().unwrap_or(f64::NAN);
        let highest = figures.last().copied().unwrap_or(f64::NAN);
        Spread { median, lowest, highest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, lowest: 1.0, highest: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::of([7.0]).median, 7.0);
        assert!(Spread::of([]).median.is_nan());
    }
}

//! A sign of life on a terminal, while there is nothing to print. In a pipe there is none.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Between two pictures.
const TICK: Duration = Duration::from_millis(100);

/// How long a wait is before it is worth a sign: what is over at once doesn't flicker.
const FIRST_SIGN: Duration = Duration::from_millis(150);

/// A spinner. It is gone when it is hidden or dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    on: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(json: bool) -> Self {
        Progress { on: !json && std::io::stderr().is_terminal(), bar: None }
    }

    /// Shows what is waited for.
    pub(crate) fn show(&mut self, what: &str) {
        if !self.on {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            return;
        }
        let bar = ProgressBar::new_spinner().with_message(what.to_owned()).with_elapsed(Duration::ZERO);
        bar.set_style(
            ProgressStyle::with_template("{spinner:.cyan} {msg:.dim} {elapsed:.dim}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        // The first tick comes after this pause, and nothing is drawn before.
        bar.enable_steady_tick(TICK.max(FIRST_SIGN));
        self.bar = Some(bar);
    }

    /// Takes it away, for something to be printed.
    pub(crate) fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.hide();
    }
}

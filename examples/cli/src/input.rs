//! Lines that a person types. A thread of its own reads them, because a read of the terminal can't be taken back.

use std::io::{BufRead, IsTerminal};

use tokio::sync::mpsc;

/// The lines of stdin.
#[derive(Debug)]
pub(crate) struct Lines(mpsc::Receiver<String>);

/// Whether a person can be asked.
pub(crate) fn has_person() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl Lines {
    /// Begins to read.
    pub(crate) fn read() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Lines(receiver)
    }

    /// The next line; none where there are no more. Safe to drop.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}

/// All of stdin.
pub(crate) async fn all() -> std::io::Result<String> {
    tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin()))
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

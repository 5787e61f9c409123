//! Options of a BubblePaw backend, and the command that starts its host.

use std::time::Duration;

use crate::rpc::Recorder;
use crate::stream::StreamLimits;

/// How a backend behaves. `Options::default()` is what most apps want.
#[derive(Debug, Clone)]
pub struct Options {
    /// The app's name, as the host sees it.
    pub client_name: String,
    /// The app's version.
    pub client_version: String,
    /// The features to ask for; all by default.
    pub features: Vec<String>,
    /// The folder the app works in, for `connect`; a spawned host has its command's.
    pub workspace: Option<String>,
    /// How long the handshake may take.
    pub handshake_timeout: Duration,
    /// How long a request may take where the call says nothing; `None`: as long as it takes.
    pub call_timeout: Option<Duration>,
    /// How many bytes a line may have.
    pub line_limit: usize,
    /// How much a stream holds for a slow reader.
    pub stream_limits: StreamLimits,
    /// How long `close` waits for the host to save and end by itself.
    pub close_grace: Duration,
    /// Whether a host that ended is started anew.
    pub restart: Restart,
    /// Where to write down both directions of the connection, each line with its secrets masked; one that is streamed in
    /// pieces over several lines is not.
    pub recorder: Option<Recorder>,
    /// The runtime that the backend's tasks run on; the current one by default.
    pub runtime: Option<tokio::runtime::Handle>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            client_name: "kitport".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            features: super::wire::feature::ALL.iter().map(|feature| (*feature).to_owned()).collect(),
            workspace: None,
            handshake_timeout: Duration::from_secs(10),
            call_timeout: Some(Duration::from_secs(60)),
            line_limit: 64 * 1024 * 1024,
            stream_limits: StreamLimits::default(),
            close_grace: Duration::from_secs(2),
            restart: Restart::Never,
            recorder: None,
            runtime: None,
        }
    }
}

/// Whether a spawned host that ended is started anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Restart {
    /// It is not: streams end with the error.
    #[default]
    Never,
    /// It is, with growing pauses. Streams stay open and go on from their cursors. After three starts in a row without a
    /// handshake the error is final.
    Always {
        /// The first pause; each further one is twice as long.
        first_pause: Duration,
        /// The longest pause.
        longest_pause: Duration,
    },
}

impl Restart {
    /// Pauses from 0.1 s to 5 s: a crash is barely seen, a crash loop doesn't heat the machine.
    pub fn always() -> Self {
        Restart::Always { first_pause: Duration::from_millis(100), longest_pause: Duration::from_secs(5) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_that_apps_are_promised() {
        let options = Options::default();
        assert_eq!(options.handshake_timeout, Duration::from_secs(10));
        assert_eq!(options.call_timeout, Some(Duration::from_secs(60)));
        assert_eq!(options.line_limit, 64 * 1024 * 1024);
        assert_eq!(options.stream_limits, StreamLimits { events: 4096, bytes: 8 * 1024 * 1024 });
        assert_eq!(options.close_grace, Duration::from_secs(2));
        assert_eq!(options.restart, Restart::Never);
        assert_eq!(options.features, super::super::wire::feature::ALL);
        assert!(options.recorder.is_none() && options.runtime.is_none() && options.workspace.is_none());
    }
}

//! What a host is started with.

use std::path::PathBuf;
use std::time::Duration;

use kitport::bubblepaw::wire::{self, feature};

use crate::faults::Faults;

/// How a host is set up. The default is a fast, quiet host in memory that offers everything.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HostOptions {
    /// The database file; in memory where there is none.
    pub db: Option<PathBuf>,
    /// The folder that the scripted agent writes in.
    pub workspace: PathBuf,
    /// The features that the host offers.
    pub features: Vec<String>,
    /// The protocol version that the host presents.
    pub protocol_version: String,
    /// How many events of a session are kept; all of them where there is no number.
    pub retention_events: Option<u64>,
    /// What all that looks random is made from: the same seed gives the same texts, ids and faults.
    pub seed: u64,
    /// The pause between two pieces of text; zero is as fast as possible.
    pub speed: Duration,
    /// Whether a model provider is configured; without one no run starts.
    pub provider: bool,
    /// What the host does wrong on purpose.
    pub faults: Faults,
}

impl Default for HostOptions {
    fn default() -> Self {
        HostOptions {
            db: None,
            workspace: PathBuf::from("."),
            features: feature::ALL.iter().map(|name| (*name).to_owned()).collect(),
            protocol_version: wire::PROTOCOL_VERSION.to_owned(),
            retention_events: None,
            seed: 1,
            speed: Duration::ZERO,
            provider: true,
            faults: Faults::default(),
        }
    }
}

/// Features as bits, so that an event can name the ones it belongs to in one number.
pub(crate) mod bits {
    use kitport::bubblepaw::wire::feature;

    /// The bit of a feature; none for a word that the contract doesn't know.
    pub(crate) fn of(name: &str) -> u32 {
        feature::ALL.iter().position(|known| *known == name).map_or(0, |place| 1 << place)
    }

    /// The bits of all features named.
    pub(crate) fn of_all<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> u32 {
        names.into_iter().fold(0, |bits, name| bits | of(name.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_bit_of_its_own() {
        let all = bits::of_all(feature::ALL);
        assert_eq!(all.count_ones() as usize, feature::ALL.len());
        assert_eq!(bits::of("telepathy"), 0);
    }
}

//! The catalogue of providers and models: one with a key and one without, so that both can be seen.

use kitport::bubblepaw::wire::{Model, Provider};

use crate::failure::{Failure, Outcome};

/// The default model of a new host.
pub(crate) const DEFAULT_MODEL: &str = "meadow/large";

struct Entry {
    id: &'static str,
    kind: &'static str,
    name: &'static str,
    has_key: bool,
    models: &'static [(&'static str, &'static str, u64)],
}

/// Models with their names and context windows, in tokens.
const CATALOGUE: &[Entry] = &[
    Entry {
        id: "meadow",
        kind: "openai-compatible",
        name: "Meadow Cloud",
        has_key: true,
        models: &[("large", "Meadow Large", 200_000), ("small", "Meadow Small", 32_000)],
    },
    Entry { id: "burrow", kind: "local", name: "Burrow", has_key: false, models: &[("tiny", "Burrow Tiny", 8_000)] },
];

pub(crate) fn all() -> Vec<Provider> {
    CATALOGUE
        .iter()
        .map(|entry| Provider {
            id: entry.id.into(),
            kind: entry.kind.into(),
            name: Some(entry.name.into()),
            has_key: entry.has_key,
            models: entry
                .models
                .iter()
                .map(|(id, name, window)| Model {
                    id: (*id).into(),
                    name: Some((*name).into()),
                    context_window: Some(*window),
                })
                .collect(),
        })
        .collect()
}

/// Every model as `provider/model`.
pub(crate) fn models() -> Vec<String> {
    CATALOGUE.iter().flat_map(|entry| entry.models.iter().map(|(model, ..)| format!("{}/{model}", entry.id))).collect()
}

/// A model that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) window: u64,
    pub(crate) has_key: bool,
}

/// Finds a model by `provider/model`.
pub(crate) fn find(model: &str) -> Outcome<Found> {
    let (provider, name) = model
        .split_once('/')
        .filter(|(provider, name)| !provider.is_empty() && !name.is_empty())
        .ok_or_else(|| Failure::refused(format!("invalid model: {model:?} must be provider/model")))?;
    let entry = CATALOGUE
        .iter()
        .find(|entry| entry.id == provider)
        .ok_or_else(|| Failure::refused(format!("unknown provider: {provider}")))?;
    let (.., window) = entry
        .models
        .iter()
        .find(|(id, ..)| *id == name)
        .ok_or_else(|| Failure::refused(format!("unknown model: {model}")))?;
    Ok(Found { window: *window, has_key: entry.has_key })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_models_are_found_and_no_others() {
        for model in models() {
            find(&model).unwrap();
        }
        assert!(find(DEFAULT_MODEL).unwrap().has_key);
        for (model, words) in [("meadow/none", "unknown model"), ("x/large", "unknown provider"), ("large", "must be")]
        {
            assert!(find(model).unwrap_err().message.contains(words));
        }
    }
}

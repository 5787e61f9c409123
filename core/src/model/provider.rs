//! Providers and models.

use serde::{Deserialize, Serialize};

/// What the host can reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Providers {
    /// The providers.
    pub providers: Vec<Provider>,
    /// The saved default model, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main: Option<String>,
    /// The default model in use, as `provider/model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_main: Option<String>,
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Its id.
    pub id: String,
    /// Its kind, in the host's word.
    pub kind: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether a key was found; the key itself is never told.
    pub has_key: bool,
    /// Its models.
    pub models: Vec<Model>,
}

/// A model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// `provider/model`.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

//! Capabilities: what a backend can do, told before the call.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Makes the enum, the struct of booleans and the way between them from one list.
macro_rules! capabilities {
    ($($(#[$doc:meta])* $variant:ident = $field:ident,)*) => {
        /// Something a backend may be able to do. Which methods belong to which is said at each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Capability {
            $($(#[$doc])* $variant,)*
        }

        impl Capability {
            /// All of them, in the order of the docs.
            pub const ALL: &'static [Capability] = &[$(Capability::$variant,)*];

            /// Its name, in snake_case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Capability::$variant => stringify!($field),)*
                }
            }
        }

        /// What a backend can do, a boolean each. They can change when a host is started anew.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase", default)]
        #[non_exhaustive]
        pub struct Capabilities {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Capabilities {
            /// Whether `capability` is on.
            pub fn has(&self, capability: Capability) -> bool {
                match capability {
                    $(Capability::$variant => self.$field,)*
                }
            }

            /// Turns `capability` on or off.
            pub fn set(&mut self, capability: Capability, on: bool) {
                match capability {
                    $(Capability::$variant => self.$field = on,)*
                }
            }
        }
    };
}

capabilities! {
    /// `create_chat`.
    CreateChat = create_chat,
    /// `send` and `run`.
    Send = send,
    /// `cancel`.
    Cancel = cancel,
    /// `decide_approval`.
    Approve = approve,
    /// `steer`.
    Steer = steer,
    /// `follow_up`.
    FollowUp = follow_up,
    /// `answer_question`.
    Questions = questions,
    /// `answer_child_question`.
    AnswerChildQuestion = answer_child_question,
    /// Plan events and the snapshot's plan.
    Plan = plan,
    /// `rewind`.
    Rewind = rewind,
    /// `load_history_range`.
    History = history,
    /// `load_context`.
    Context = context,
    /// `load_summary`.
    Summary = summary,
    /// `rename`.
    Rename = rename,
    /// `resume`.
    Resume = resume,
    /// Usage events and the snapshot's usage.
    Usage = usage,
    /// Child events.
    ChildEvents = child_events,
    /// `cancel_child`.
    Children = children,
    /// `send_queued_now`, `edit_queued` and `remove_queued`.
    Queue = queue,
    /// `cancel_job`.
    Jobs = jobs,
    /// `archive`.
    Archive = archive,
    /// `fork`.
    Fork = fork,
    /// `undo_edit`.
    Edits = edits,
    /// `list_profiles` and `set_profile`.
    Profiles = profiles,
    /// `list_providers`.
    Providers = providers,
    /// `set_default_model`.
    DefaultModel = default_model,
    /// `list_models` and `set_model`.
    Models = models,
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Who provides a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProvidedBy {
    /// The host.
    Host,
    /// The kit, on top of what the host can do.
    Kit,
}

/// A capability with its reason, for tool tips and for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CapabilityDetail {
    /// Whether it is on.
    pub on: bool,
    /// Who provides it, or would.
    pub by: ProvidedBy,
    /// Why it is off, in a sentence for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_off: Option<String>,
}

/// All capabilities with their details. One that an adapter says nothing of is off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CapabilityTable(BTreeMap<Capability, CapabilityDetail>);

impl CapabilityTable {
    /// An empty table: everything off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that `capability` is on, and who provides it.
    pub fn on(&mut self, capability: Capability, by: ProvidedBy) {
        self.0.insert(capability, CapabilityDetail { on: true, by, why_off: None });
    }

    /// Says that `capability` is off, and why.
    pub fn off(&mut self, capability: Capability, by: ProvidedBy, why: impl Into<String>) {
        self.0.insert(capability, CapabilityDetail { on: false, by, why_off: Some(why.into()) });
    }

    /// The detail of `capability`.
    pub fn detail(&self, capability: Capability) -> CapabilityDetail {
        self.0.get(&capability).cloned().unwrap_or(CapabilityDetail {
            on: false,
            by: ProvidedBy::Host,
            why_off: Some("this backend does not offer it".to_owned()),
        })
    }

    /// A boolean for each.
    pub fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::default();
        for (capability, detail) in &self.0 {
            all.set(*capability, detail.on);
        }
        all
    }
}

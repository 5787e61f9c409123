//! The handshake, and what its features turn on.

use std::time::Duration;

use super::options::Options;
use super::wire::{self, Method, feature};
use super::{errors, rpc_call};
use crate::error::{KitError, Result};
use crate::model::{Capability, CapabilityTable, Constraints, HostInfo, ProvidedBy, QuestionAnswers, Workspace};
use crate::rpc::{Client, Timeout};

/// What a handshake settled.
#[derive(Debug, Clone)]
pub(crate) struct Agreed {
    pub(crate) host: HostInfo,
}

/// Says hello and checks the version. Nothing else is sent before the answer.
pub(crate) async fn shake_hands(client: &Client, options: &Options, timeout: Duration) -> Result<Agreed> {
    let params = wire::InitializeParams {
        protocol_version: wire::PROTOCOL_VERSION.to_owned(),
        client: wire::Party { name: options.client_name.clone(), version: options.client_version.clone() },
        features: options.features.clone(),
    };
    let answer = rpc_call::raw::<wire::Initialize>(client, &params, Timeout::After(timeout)).await?;
    // Of a version that is not ours only the version is read: its other fields may have any shape.
    #[derive(serde::Deserialize)]
    struct Version {
        protocol_version: String,
    }
    let unreadable = |_| errors::unreadable(wire::Initialize::NAME);
    let Version { protocol_version } = serde_json::from_str(answer.get()).map_err(unreadable)?;
    if protocol_version != wire::PROTOCOL_VERSION {
        return Err(KitError::protocol_mismatch(wire::PROTOCOL_VERSION, protocol_version));
    }
    let answer: wire::InitializeResult = serde_json::from_str(answer.get()).map_err(unreadable)?;
    // Only what was asked for can have been negotiated.
    let features = answer.features.into_iter().filter(|feature| options.features.contains(feature)).collect();
    let workspace = Workspace { path: Some(answer.workspace.path), name: answer.workspace.name, branch: None };
    let host = HostInfo {
        name: answer.host.name,
        version: answer.host.version,
        protocol_version,
        features,
        workspace: Some(workspace),
    };
    Ok(Agreed { host })
}

impl Agreed {
    pub(crate) fn has(&self, feature: &str) -> bool {
        self.host.features.iter().any(|negotiated| negotiated == feature)
    }

    pub(crate) fn table(&self) -> CapabilityTable {
        let mut table = CapabilityTable::new();
        for (capability, needs) in CAPABILITIES {
            let missing: Vec<_> = match needs {
                Needs::Nothing => Vec::new(),
                Needs::Features(features) => features.iter().filter(|feature| !self.has(feature)).copied().collect(),
                Needs::Missing(why) => {
                    table.off(*capability, ProvidedBy::Host, *why);
                    continue;
                }
            };
            match missing.as_slice() {
                [] => table.on(*capability, ProvidedBy::Host),
                missing => {
                    let why = format!("the host did not negotiate {}", missing.join(" and "));
                    table.off(*capability, ProvidedBy::Host, why);
                }
            }
        }
        table
    }

    pub(crate) fn constraints(&self) -> Constraints {
        Constraints {
            references: false,
            question_answers: QuestionAnswers {
                several_items: false,
                several_choices: false,
                choice_and_text: false,
                skip: false,
            },
            follow_up_while_running: self.has(feature::FOLLOW_UP),
        }
    }
}

/// What a capability needs.
enum Needs {
    Nothing,
    Features(&'static [&'static str]),
    Missing(&'static str),
}

/// Every capability, and what it needs of the host.
const CAPABILITIES: &[(Capability, Needs)] = &[
    (Capability::CreateChat, Needs::Nothing),
    (Capability::Send, Needs::Nothing),
    (Capability::Cancel, Needs::Nothing),
    (Capability::Rename, Needs::Nothing),
    (Capability::Resume, Needs::Nothing),
    (Capability::Usage, Needs::Nothing),
    (Capability::Approve, Needs::Features(&[feature::APPROVALS])),
    (Capability::Steer, Needs::Features(&[feature::STEER])),
    (Capability::FollowUp, Needs::Features(&[feature::FOLLOW_UP])),
    (Capability::Questions, Needs::Features(&[feature::QUESTIONS])),
    (Capability::AnswerChildQuestion, Needs::Features(&[feature::ANSWER_CHILD])),
    (Capability::Plan, Needs::Features(&[feature::PLAN])),
    (Capability::Rewind, Needs::Features(&[feature::REWIND])),
    (Capability::History, Needs::Features(&[feature::CONTEXT])),
    (Capability::Context, Needs::Features(&[feature::CONTEXT])),
    (Capability::Summary, Needs::Features(&[feature::CONTEXT])),
    (Capability::ChildEvents, Needs::Features(&[feature::CHILD_EVENTS])),
    (Capability::Children, Needs::Features(&[feature::CHILD_CANCEL])),
    (Capability::Providers, Needs::Features(&[feature::PROVIDERS])),
    (Capability::DefaultModel, Needs::Features(&[feature::SET_MAIN])),
    (Capability::Models, Needs::Features(&[feature::PROVIDERS, feature::SET_MAIN])),
    (Capability::Queue, Needs::Missing("BubblePaw has no method to change a queued input")),
    (Capability::Jobs, Needs::Missing("BubblePaw does not cancel background processes one by one")),
    (Capability::Archive, Needs::Missing("BubblePaw deletes sessions, it does not put them away")),
    (Capability::Fork, Needs::Missing("BubblePaw does not offer forks over stdio")),
    (Capability::Edits, Needs::Missing("BubblePaw rewinds to a message, it does not undo single edits")),
    (Capability::Profiles, Needs::Missing("BubblePaw has no profiles")),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(features: &[&str]) -> Agreed {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        let host = HostInfo {
            name: "h".into(),
            version: "1".into(),
            protocol_version: "0.1".into(),
            features,
            workspace: None,
        };
        Agreed { host }
    }

    #[test]
    fn every_capability_has_its_row() {
        let mut listed: Vec<_> = CAPABILITIES.iter().map(|(capability, _)| *capability).collect();
        listed.sort();
        let mut all = Capability::ALL.to_vec();
        all.sort();
        assert_eq!(listed, all);
    }

    #[test]
    fn without_features_only_the_basics_are_on_and_the_rest_says_why() {
        let table = agreed(&[]).table();
        let on: Vec<_> = Capability::ALL.iter().filter(|c| table.detail(**c).on).map(|c| c.name()).collect();
        assert_eq!(on, ["create_chat", "send", "cancel", "rename", "resume", "usage"]);
        for capability in Capability::ALL.iter().filter(|c| !table.detail(**c).on) {
            assert!(table.detail(*capability).why_off.is_some(), "{capability}");
        }
    }

    #[test]
    fn each_feature_turns_on_what_the_contract_says() {
        for (feature, names) in [
            (feature::APPROVALS, &["approve"][..]),
            (feature::STEER, &["steer"]),
            (feature::FOLLOW_UP, &["follow_up"]),
            (feature::QUESTIONS, &["questions"]),
            (feature::ANSWER_CHILD, &["answer_child_question"]),
            (feature::PLAN, &["plan"]),
            (feature::REWIND, &["rewind"]),
            (feature::CONTEXT, &["history", "context", "summary"]),
            (feature::CHILD_EVENTS, &["child_events"]),
            (feature::CHILD_CANCEL, &["children"]),
            (feature::PAGINATION, &[]),
            (feature::PROVIDERS, &["providers"]),
            (feature::SET_MAIN, &["default_model"]),
        ] {
            let (without, with) = (agreed(&[]).table(), agreed(&[feature]).table());
            let turned: Vec<_> = Capability::ALL
                .iter()
                .filter(|c| with.detail(**c).on && !without.detail(**c).on)
                .map(|c| c.name())
                .collect();
            assert_eq!(turned, names, "{feature}");
        }
        assert!(agreed(&[feature::PROVIDERS, feature::SET_MAIN]).table().detail(Capability::Models).on);
        assert!(agreed(&[feature::FOLLOW_UP]).constraints().follow_up_while_running);
        assert!(!agreed(&[]).constraints().follow_up_while_running);
    }
}

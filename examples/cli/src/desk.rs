//! What waits for a person: approvals and questions, of a chat and of those it started, in the order they came.

use std::collections::VecDeque;

use kitport::model::{Answer, Approval, ApprovalState, ChatId, ChatSnapshot, Decision, Event, EventKind, Question};
use kitport::{AgentBackend, KitError};

use crate::output::{clean, one_line, value};

/// The longest title of an approval that is shown.
const TITLE_CHARS: usize = 120;

/// One thing that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ask {
    /// An approval of a chat, which may be a child.
    Approval { chat: ChatId, approval: Box<Approval> },
    /// A question of a chat, or of its child.
    Question { chat: ChatId, child: Option<ChatId>, question: Question },
}

impl Ask {
    fn is(&self, id: &str) -> bool {
        match self {
            Ask::Approval { approval, .. } => approval.id == *id,
            Ask::Question { question, .. } => question.id == *id,
        }
    }

    /// What a person is asked.
    pub(crate) fn text(&self) -> String {
        match self {
            Ask::Approval { approval, .. } => {
                let title = approval.title.as_deref().or(approval.tool.as_deref()).unwrap_or("what it wants to do");
                let arguments = approval.arguments.as_ref().map(value).unwrap_or_default();
                format!("approve? {} {arguments}", one_line(title, TITLE_CHARS)).trim_end().to_owned()
            }
            Ask::Question { question, child, .. } => {
                let who = if child.is_some() { "a child asks: " } else { "" };
                let mut text = format!("{who}{}", clean(&question.text));
                for (n, label) in question.suggestions.iter().enumerate() {
                    text.push_str(&format!("\n  {} {}", n + 1, one_line(label, TITLE_CHARS)));
                }
                text
            }
        }
    }

    /// What can be typed.
    pub(crate) fn choices(&self) -> &'static str {
        match self {
            Ask::Approval { .. } => "[y]es, [n]o, yes for the [s]ession",
            Ask::Question { question, .. } if question.suggestions.is_empty() => "a text",
            Ask::Question { .. } => "a number or a text",
        }
    }

    /// How it is decided in another terminal, or later.
    pub(crate) fn elsewhere(&self) -> String {
        match self {
            Ask::Approval { chat, approval } => format!("kitport approve {chat} {}", approval.id),
            Ask::Question { chat, question, .. } => format!("kitport answer {chat} {} TEXT", question.id),
        }
    }

    /// Carries out what a person typed. None: it is no answer.
    pub(crate) async fn decide(&self, kit: &dyn AgentBackend, line: &str) -> Option<Result<(), KitError>> {
        match self {
            Ask::Approval { chat, approval } => {
                let decision = decision(line)?;
                Some(kit.decide_approval(chat, &approval.id, decision, None).await)
            }
            Ask::Question { chat, child, question } => {
                let answer = answer(question, line)?;
                Some(match child {
                    Some(child) => kit.answer_child_question(chat, child, &question.id, answer).await,
                    None => kit.answer_question(chat, &question.id, answer).await,
                })
            }
        }
    }
}

fn decision(line: &str) -> Option<Decision> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Decision::Approve),
        "n" | "no" => Some(Decision::Deny),
        "s" | "session" => Some(Decision::ApproveSession),
        _ => None,
    }
}

/// A number is the label at that place.
pub(crate) fn answer(question: &Question, line: &str) -> Option<Answer> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let numbered = line.parse::<usize>().ok().and_then(|n| question.suggestions.get(n.checked_sub(1)?));
    let label = numbered.or_else(|| question.suggestions.iter().find(|label| *label == line));
    Some(match label {
        Some(label) => Answer::Choice { choice: label.clone(), text: None },
        None => Answer::Plain(line.to_owned()),
    })
}

/// All that waits.
#[derive(Debug, Default)]
pub(crate) struct Desk(VecDeque<Ask>);

impl Desk {
    /// What a snapshot says that waits.
    pub(crate) fn snapshot(&mut self, snapshot: &ChatSnapshot) {
        let chat = &snapshot.chat.id;
        for approval in snapshot.approvals.iter().filter(|approval| approval.state == ApprovalState::Pending) {
            self.put(Ask::Approval { chat: chat.clone(), approval: Box::new(approval.clone()) });
        }
        if let Some(question) = &snapshot.question {
            self.put(Ask::Question { chat: chat.clone(), child: None, question: question.clone() });
        }
        for child in &snapshot.children {
            if let Some(question) = &child.question {
                let (chat, child) = (chat.clone(), Some(child.id.clone()));
                self.put(Ask::Question { chat, child, question: question.clone() });
            }
        }
    }

    /// What an event of a chat changes.
    pub(crate) fn event(&mut self, event: &Event) {
        let chat = event.chat.clone();
        match &event.kind {
            EventKind::ApprovalRequested(asked) => {
                self.put(Ask::Approval { chat, approval: Box::new(asked.approval.clone()) });
            }
            EventKind::ApprovalResolved(resolved) => self.take(&resolved.approval_id),
            EventKind::QuestionAsked(asked) => {
                self.forget_questions(&chat);
                self.put(Ask::Question { chat, child: None, question: asked.question.clone() });
            }
            EventKind::QuestionResolved(_) => self.forget_questions(&chat),
            EventKind::ChildQuestionAsked(asked) => {
                let child = Some(asked.child_id.clone());
                self.put(Ask::Question { chat, child, question: asked.question.clone() });
            }
            EventKind::ChildQuestionResolved(resolved) => self.take(&resolved.question_id),
            _ => {}
        }
    }

    /// What is to be decided first.
    pub(crate) fn first(&self) -> Option<&Ask> {
        self.0.front()
    }

    /// Takes away what was decided.
    pub(crate) fn take(&mut self, id: &str) {
        self.0.retain(|ask| !ask.is(id));
    }

    /// Takes the first one away.
    pub(crate) fn take_first(&mut self) -> Option<Ask> {
        self.0.pop_front()
    }

    fn put(&mut self, ask: Ask) {
        if !self.0.contains(&ask) {
            self.0.push_back(ask);
        }
    }

    /// A chat has one question of its own at most.
    fn forget_questions(&mut self, of: &ChatId) {
        self.0.retain(|ask| !matches!(ask, Ask::Question { chat, child: None, .. } if chat == of));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(suggestions: &[&str]) -> Question {
        let suggestions = suggestions.iter().map(|label| (*label).to_owned()).collect();
        Question { id: "q1".into(), text: "Which?".into(), suggestions }
    }

    #[test]
    fn what_is_typed_is_a_label_or_a_text() {
        let asked = question(&["green", "blue"]);
        let choice = |label: &str| Some(Answer::Choice { choice: label.to_owned(), text: None });
        assert_eq!(answer(&asked, " 2 "), choice("blue"));
        assert_eq!(answer(&asked, "green"), choice("green"));
        assert_eq!(answer(&asked, "3"), Some(Answer::Plain("3".into())));
        assert_eq!(answer(&asked, "0"), Some(Answer::Plain("0".into())));
        assert_eq!(answer(&asked, "  "), None);
        assert_eq!(answer(&question(&[]), "1"), Some(Answer::Plain("1".into())));
    }

    #[test]
    fn only_clear_words_decide() {
        assert_eq!(decision(" Y "), Some(Decision::Approve));
        assert_eq!(decision("session"), Some(Decision::ApproveSession));
        assert_eq!(decision("no"), Some(Decision::Deny));
        assert_eq!(decision(""), None, "an empty line approves nothing");
        assert_eq!(decision("yep"), None);
    }

    #[test]
    fn what_was_decided_elsewhere_is_not_asked() {
        let mut desk = Desk::default();
        let event = |json: serde_json::Value| -> Event {
            let mut event = serde_json::json!({"chat": "c", "seq": 1, "durable": true});
            event.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
            serde_json::from_value(event).unwrap()
        };
        let asked = event(serde_json::json!({
            "kind": "approval.requested", "approval": {"id": "a1", "state": "pending"}
        }));
        desk.event(&asked);
        desk.event(&asked);
        desk.event(&event(
            serde_json::json!({"kind": "question.asked", "question": {"id": "q1", "text": "?", "suggestions": []}}),
        ));
        assert_eq!(desk.0.len(), 2);
        desk.event(&event(serde_json::json!({"kind": "approval.resolved", "approvalId": "a1", "state": "denied"})));
        desk.event(&event(serde_json::json!({"kind": "question.resolved"})));
        assert!(desk.first().is_none());
    }
}

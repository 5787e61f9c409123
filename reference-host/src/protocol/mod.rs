//! The protocol: requests by line, answers by id. What a method does is in the file of its theme.

mod approval;
mod context;
mod handshake;
mod line;
mod question;
mod request;
mod run;
mod serve;
mod session;
mod setup;

pub(crate) use line::{Line, read as read_line};
pub(crate) use request::{Incoming, Request, error_line, read as read_request};
pub use serve::{Served, serve};

use std::sync::Arc;

use kitport::bubblepaw::wire::{self, METHODS, Method, code};

use crate::failure::{Failure, NOT_INITIALIZED, Outcome};
use crate::host::Host;
use crate::options::bits;

/// What becomes of a request that was carried out.
enum Answer {
    /// This result, as JSON.
    Result(String),
    /// The transaction answered it.
    Given,
    /// This result, but what the request caused may overtake it.
    Late(String),
}

impl From<String> for Answer {
    fn from(json: String) -> Self {
        Answer::Result(json)
    }
}

/// Carries a request out.
fn dispatch(host: &Arc<Host>, request: &Request<'_>, initialized: &mut bool) -> Outcome<Answer> {
    let method = request.method;
    if method == wire::Initialize::NAME {
        return handshake::initialize(host, request, initialized).map(Answer::Result);
    }
    if !*initialized {
        return Err(Failure::new(NOT_INITIALIZED, "initialize first"));
    }
    let known = METHODS.iter().find(|(name, _)| *name == method);
    match known {
        None => return Err(Failure::new(code::METHOD_NOT_FOUND, format!("no such method: {method}"))),
        Some((_, Some(feature))) if host.negotiated() & bits::of(feature) == 0 => {
            let message = format!("no such method: {method} belongs to {feature}, which was not negotiated");
            return Err(Failure::new(code::METHOD_NOT_FOUND, message));
        }
        Some(_) => {}
    }
    Ok(match method {
        wire::SessionList::NAME => session::list(host, request)?.into(),
        wire::SessionOpen::NAME => session::open(host, request)?.into(),
        wire::SessionState::NAME => session::state(host, request)?.into(),
        wire::SessionRename::NAME => session::rename(host, request)?.into(),
        wire::SessionRewind::NAME => session::rewind(host, request)?.into(),
        wire::EventsAfter::NAME => session::events_after(host, request)?.into(),
        wire::ApprovalList::NAME => approval::list(host, request)?.into(),
        wire::ApprovalDecide::NAME => approval::decide(host, request)?.into(),
        wire::RunStart::NAME => run::start(host, request)?,
        wire::RunResume::NAME => run::resume(host, request)?,
        wire::RunFollowUp::NAME => run::follow_up(host, request)?.into(),
        wire::RunSteer::NAME => run::steer(host, request)?.into(),
        wire::RunCancel::NAME => run::cancel(host, request)?.into(),
        wire::QuestionAnswer::NAME => question::answer(host, request)?.into(),
        wire::QuestionAnswerChild::NAME => question::answer_child(host, request)?.into(),
        wire::ChildCancel::NAME => run::cancel_child(host, request)?.into(),
        wire::HistoryRange::NAME => context::history(host, request)?.into(),
        wire::ContextStructure::NAME => context::structure(host, request)?.into(),
        wire::ContextEvents::NAME => context::events(host, request)?.into(),
        wire::ContextView::NAME => context::view(host, request)?.into(),
        wire::ContextSummary::NAME => context::summary(host, request)?.into(),
        wire::ProvidersList::NAME => setup::providers(host, request)?.into(),
        wire::RolesSetMain::NAME => setup::set_main(host, request)?.into(),
        wire::ConfigSet::NAME => setup::set_config(host, request)?.into(),
        other => return Err(Failure::new(code::METHOD_NOT_FOUND, format!("no such method: {other}"))),
    })
}

/// Writes the result of a method as the contract has it.
fn result<M: Method>(result: &M::Result) -> Outcome<String> {
    Ok(serde_json::to_string(result)?)
}

/// The result of a method that tells nothing.
fn nothing() -> Outcome<String> {
    Ok("{}".to_owned())
}

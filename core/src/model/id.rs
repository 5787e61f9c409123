//! Ids: strings as the host wrote them, one type each so that two can't be swapped.

use super::macros::id_type;

id_type! {
    /// A chat; a child's id is a chat id too.
    ChatId;
    /// One run of the agent.
    RunId;
    /// An item of a chat: a message, a tool call or an edit.
    ItemId;
    /// A queued input.
    InputId;
    /// A request for approval.
    ApprovalId;
    /// A question of the agent.
    QuestionId;
    /// A background job.
    JobId;
}

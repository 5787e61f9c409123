//! How a chat is named on the command line: an id, the beginning of one, or `last`.

use kitport::model::{Chat, ChatId};
use kitport::{ChatReader, KitError};

use crate::failure::Failure;

/// All chats, page by page.
pub(crate) async fn all_chats(reader: &dyn ChatReader, query: Option<&str>) -> Result<Vec<Chat>, KitError> {
    let mut chats = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = reader.list_chats(cursor.as_deref(), query).await?;
        chats.extend(page.chats);
        match page.next_cursor {
            // A host that gives the same cursor again would be asked for ever.
            Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
            _ => return Ok(chats),
        }
    }
}

/// The chat that is meant. One that is in no list is left to the host: it may keep children out of its lists.
pub(crate) async fn find(reader: &dyn ChatReader, given: &str) -> Result<ChatId, Failure> {
    let chats = all_chats(reader, None).await?;
    pick(&chats, given)
}

fn pick(chats: &[Chat], given: &str) -> Result<ChatId, Failure> {
    if given.trim().is_empty() {
        return Err(Failure::usage("the chat is missing").hint("give an id, the beginning of one, or `last`"));
    }
    if given == "last" {
        // A child was not begun by the person, and may have changed after its parent.
        let own = chats.iter().filter(|chat| chat.parent_id.is_none());
        let last = own.max_by_key(|chat| chat.updated_at);
        return match last {
            Some(chat) => Ok(chat.id.clone()),
            None => Err(Failure::from(KitError::not_found("there is no chat yet"))
                .hint("`kitport send --new TITLE TEXT` makes one")),
        };
    }
    if chats.iter().any(|chat| chat.id == *given) {
        return Ok(given.into());
    }
    let mut fitting = chats.iter().filter(|chat| chat.id.starts_with(given));
    match (fitting.next(), fitting.next()) {
        (Some(chat), None) => Ok(chat.id.clone()),
        (Some(one), Some(other)) => {
            let message = format!("more than one chat begins with {given:?}: {} and {} are two", one.id, other.id);
            Err(Failure::usage(message).hint("give more of the id"))
        }
        (None, _) => Ok(given.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(id: &str, second: i64) -> Chat {
        let time = serde_json::json!(format!("2026-01-01T00:00:{second:02}Z"));
        serde_json::from_value(serde_json::json!({"id": id, "title": "t", "createdAt": time, "updatedAt": time}))
            .unwrap()
    }

    #[test]
    fn a_chat_is_found_by_id_beginning_or_time() {
        let chats = [chat("ab", 1), chat("abc", 9), chat("xyz", 3)];
        let found = |given| pick(&chats, given).map(|id| id.to_string()).map_err(|failure| failure.code());
        assert_eq!(found("last").as_deref(), Ok("abc"));
        assert_eq!(found("ab").as_deref(), Ok("ab"), "a whole id goes before a beginning");
        assert_eq!(found("x").as_deref(), Ok("xyz"));
        assert_eq!(found("a"), Err("usage"));
        assert_eq!(found(" "), Err("usage"));
        assert_eq!(found("child").as_deref(), Ok("child"), "the host knows");
        let child = Chat { parent_id: Some("abc".into()), ..chat("child", 20) };
        let family = [chat("ab", 1), chat("abc", 9), child];
        assert_eq!(pick(&family, "last").map(|id| id.to_string()).unwrap(), "abc", "the newest that is no child");
        assert_eq!(pick(&[], "last").unwrap_err().code(), "not_found");
    }
}

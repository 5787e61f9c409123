//! `chats`: the list.

use kitport::ChatReader;
use kitport::model::ChatPage;

use crate::app::App;
use crate::args::ChatsArgs;
use crate::chat_ref::all_chats;
use crate::failure::{Exit, Failure};
use crate::output::{Table, one_line};

/// The longest title in a list.
const TITLE_CHARS: usize = 60;

pub(super) async fn run(app: &App, args: ChatsArgs) -> Result<Exit, Failure> {
    let query = args.query.as_deref();
    let page = app
        .with_backend(async |kit| {
            Ok(match args.all {
                true => ChatPage { chats: all_chats(kit, query).await?, next_cursor: None },
                false => kit.list_chats(None, query).await?,
            })
        })
        .await?;
    if app.out.json {
        app.out.json(&page)?;
        return Ok(Exit::Done);
    }
    if page.chats.is_empty() {
        app.out.note(match query {
            Some(_) => "no chat has such a title",
            None => "there is no chat yet: `kitport send --new TITLE TEXT` makes one",
        });
    } else {
        let mut table = Table::new(["CHAT", "CHANGED", "TITLE", "MODEL"]);
        for chat in &page.chats {
            let status = chat.run_status.as_ref().map(|status| format!(" ({status})")).unwrap_or_default();
            table.row([
                chat.id.to_string(),
                short_time(&chat.updated_at.to_string()),
                format!("{}{status}", one_line(&chat.title, TITLE_CHARS)),
                chat.model.clone().unwrap_or_default(),
            ]);
        }
        for line in table.lines() {
            app.out.line(line)?;
        }
    }
    if page.next_cursor.is_some() {
        app.out.note("there are more: --all lists them");
    }
    Ok(Exit::Done)
}

/// A time to the second.
fn short_time(time: &str) -> String {
    time.split(['.', 'Z']).next().unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_cut_to_the_second() {
        assert_eq!(super::short_time("2026-01-02T03:04:05.678Z"), "2026-01-02 03:04:05");
        assert_eq!(super::short_time("2026-01-02T03:04:05Z"), "2026-01-02 03:04:05");
    }
}

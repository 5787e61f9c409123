//! `tail`: a chat's events, or its items, as they come.

use std::sync::Arc;

use console::style;
use kitport::model::Event;
use kitport::{BubblePaw, ChatFeed, ChatReader, FeedUpdate};

use crate::app::App;
use crate::args::TailArgs;
use crate::chat_ref;
use crate::failure::{Exit, Failure};
use crate::output::{Output, describe, item};

pub(super) async fn run(app: &App, args: TailArgs) -> Result<Exit, Failure> {
    app.with_backend(async |kit| {
        let chat = chat_ref::find(kit, &args.chat).await?;
        // The stream of a chat that isn't there would say so, but only with its first event.
        kit.load_chat(&chat).await?;
        if args.feed {
            let feed = ChatFeed::open(Arc::new(BubblePaw::clone(kit)), &chat).await?;
            while let Some(update) = feed.next().await {
                print_update(app.out, &update?)?;
            }
            return Ok(Exit::Done);
        }
        let events = kit.events(&chat, args.after);
        while let Some(event) = events.next().await {
            let event = event?;
            print_event(app.out, &event)?;
            if args.until.as_deref() == Some(event.kind.name()) {
                break;
            }
        }
        Ok(Exit::Done)
    })
    .await
}

fn print_event(out: Output, event: &Event) -> Result<(), Failure> {
    if out.json {
        return Ok(out.json(event)?);
    }
    // A transient event has no place of its own.
    let seq = if event.durable { event.seq.to_string() } else { "·".to_owned() };
    let kind = style(format!("{:<23}", event.kind.name())).cyan();
    Ok(out.line(format!("{seq:>8}  {kind}  {}", describe(&event.kind)).trim_end())?)
}

fn print_update(out: Output, update: &FeedUpdate) -> Result<(), Failure> {
    if out.json {
        return Ok(out.json(update)?);
    }
    let changed = &update.changed;
    for gone in &changed.removed {
        // What takes its place is told next.
        if !changed.inserted.iter().any(|new| new.in_place_of.as_ref() == Some(&gone.id) || new.id == gone.id) {
            out.line(format!("{} {:>4}  {}", style("-").red(), gone.index, gone.id))?;
        }
    }
    for (mark, list) in [(style("+").green(), &changed.inserted), (style("~").yellow(), &changed.updated)] {
        for change in list {
            if let Some(shown) = update.state.item(&change.id) {
                let passing = if shown.is_passing() { style(" (passing)").dim().to_string() } else { String::new() };
                let text = item(&shown.to_item());
                out.line(format!("{mark} {:>4}  {}{passing}  {text}", change.index, change.id).trim_end())?;
            }
        }
    }
    if let Some(trouble) = &update.trouble {
        out.note(format!("the chat could not be loaded anew: {trouble}"));
    }
    Ok(())
}

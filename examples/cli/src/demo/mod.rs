//! `demo`: a tour of the kit with a host of its own, a real child process, that is killed on the way; then a check of
//! what came against what must come. It is the main job, shown to a person and proved to a machine.

mod checks;
mod host;
mod stage;
mod steps;

use std::sync::Arc;

use kitport::bubblepaw::Restart;
use kitport::{AgentBackend, BubblePaw, ChatFeed, ChatReader};

use crate::app::App;
use crate::args::DemoArgs;
use crate::failure::{Exit, Failure};
use checks::Checks;
use host::DemoHost;
use stage::Stage;

/// Runs the demo. It is done only if every check passed.
pub(crate) async fn run(app: &App, args: DemoArgs) -> Result<Exit, Failure> {
    if app.global.host.is_some() || app.global.db.is_some() {
        return Err(Failure::usage("the demo brings a host and a file of its own"));
    }
    let began = std::time::Instant::now();
    let host = DemoHost::new(args.host_arg)?;
    let mut options = app.options();
    options.restart = Restart::always();
    let kit = tokio::select! {
        kit = BubblePaw::spawn(host.command()?, options) => kit?,
        () = app.interrupt.asked() => return Err(Failure::interrupted()),
    };
    let told = tokio::select! {
        told = tour(app, &kit, &host) => told,
        () = app.interrupt.asked() => Err(Failure::interrupted()),
    };
    kit.close().await;
    let mut checks = told?;
    checks.no_process_left(&host);
    checks.print(app.out, began.elapsed())
}

/// Plays all steps, then checks what can be checked while the host is there. A step that fails is a check that failed.
async fn tour(app: &App, kit: &BubblePaw, host: &DemoHost) -> Result<Checks, Failure> {
    let created = kit.created_chats();
    let chat = kit.create_chat(Some("A tour of the kit")).await?;
    let feed = ChatFeed::open(Arc::new(kit.clone()), &chat.id).await?;
    let mut stage = Stage::new(app, kit, chat.id.clone());
    let played = steps::play(&mut stage, host, &chat, &created).await;
    let mut checks = Checks::new();
    checks.played(played)?;
    stage.step("The check", "all that came live is held against what the host has stored")?;
    checks.order(&stage.seen);
    checks.kinds(&stage.seen);
    checks.replay(kit, &chat.id, &stage.seen).await;
    checks.feed(kit, &chat.id, &feed).await;
    Ok(checks)
}

//! The README's first program.

use kitport::bubblepaw::Options;
use kitport::model::EventKind;
use kitport::rpc::HostCommand;
use kitport::{AgentBackend, BubblePaw, ChatReader};

#[tokio::main]
async fn main() -> kitport::Result<()> {
    let host = HostCommand::new("bubblepaw").arg("stdio").cwd("/project");
    let backend = BubblePaw::spawn(host, Options::default()).await?;
    let chat = backend.create_chat(Some("Fix the tests")).await?;
    let events = backend.run(&chat.id, "Why does the build fail?").await?;
    while let Some(event) = events.next().await {
        if let EventKind::MessageDelta(delta) = event?.kind {
            print!("{}", delta.text);
        }
    }
    backend.close().await;
    Ok(())
}

//! The kit's side: a backend whose host is a feeder, on a runtime of one thread.

use anyhow::Result;
use kitport::BubblePaw;
use kitport::bubblepaw::Options;
use kitport::rpc::HostCommand;

use crate::feeder::{self, Script};

/// Runs on one thread, as all that a worker does is bound to one core; as a task, which is where apps mostly are.
pub(crate) fn run<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::spawn(work).await })?
}

/// Starts a feeder and shakes hands with it.
pub(crate) async fn open(script: Script) -> Result<BubblePaw> {
    let command = HostCommand::new(std::env::current_exe()?).args(feeder::arguments(&script)?);
    Ok(BubblePaw::spawn(command, Options::default()).await?)
}

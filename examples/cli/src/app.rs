//! What all subcommands share: the options, the output, Ctrl-C and the recorder.

use kitport::rpc::Recorder;

use crate::args::Global;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// One run of the program.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) global: Global,
    pub(crate) out: Output,
    pub(crate) interrupt: Interrupt,
    pub(crate) recorder: Option<Recorder>,
}

impl App {
    /// Begins to listen for Ctrl-C.
    pub(crate) fn new(global: Global) -> Result<Self, Failure> {
        let interrupt = Interrupt::listen()
            .map_err(|error| Failure::failed(format!("signals could not be listened for: {error}")))?;
        Ok(App { out: Output::new(global.json), global, interrupt, recorder: None })
    }
}

//! The host in this process: the same host, with pipes that are memory.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

use crate::options::HostOptions;
use crate::protocol::{Served, serve};

/// Bytes that a pipe holds, as the operating system's own do.
const PIPE_BYTES: usize = 64 * 1024;

/// A host in this process, seen from the client's side. It ends when `writer` is shut down or dropped with `reader`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Embedded {
    /// What the host writes.
    pub reader: ReadHalf<DuplexStream>,
    /// What the host reads.
    pub writer: WriteHalf<DuplexStream>,
    /// The host's own task, for those who want to see how it ended.
    pub task: JoinHandle<std::io::Result<Served>>,
}

/// Starts a host on the current tokio runtime.
pub fn embedded(options: HostOptions) -> Embedded {
    let (near, far) = duplex(PIPE_BYTES);
    let (reader, writer) = split(far);
    let task = tokio::spawn(async move {
        let (reader, writer) = split(near);
        serve(reader, writer, options).await
    });
    let (reader, writer) = (reader, writer);
    Embedded { reader, writer, task }
}

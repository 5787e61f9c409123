//! The host in this process: the same host, with pipes that are memory.

use kitport::BubblePaw;
use kitport::bubblepaw::Options;
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

impl Embedded {
    /// A backend on this host. It ends the host when it is closed or dropped.
    pub async fn connect(self, options: Options) -> kitport::Result<BubblePaw> {
        BubblePaw::connect(self.reader, self.writer, options).await
    }
}

/// Starts a host on the current tokio runtime.
pub fn embedded(options: HostOptions) -> Embedded {
    let (near, far) = duplex(PIPE_BYTES);
    let (reader, writer) = split(far);
    let task = tokio::spawn(async move {
        let (reader, writer) = split(near);
        serve(reader, writer, options).await
    });
    Embedded { reader, writer, task }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};

    use super::*;

    const INITIALIZE: &str = r#"{"id":1,"method":"initialize","params":{"protocol_version":"0.1","client":{"name":"t","version":"0"},"features":[]}}"#;

    type HostLines = Lines<BufReader<ReadHalf<DuplexStream>>>;

    /// A host in the middle of a run of `text`.
    async fn running(text: &str) -> (HostLines, WriteHalf<DuplexStream>, JoinHandle<std::io::Result<Served>>) {
        let Embedded { reader, mut writer, task } = embedded(HostOptions::default());
        let open = r#"{"id":2,"method":"session.open"}"#;
        writer.write_all(format!("{INITIALIZE}\n{open}\n").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(reader).lines();
        lines.next_line().await.unwrap();
        let opened: serde_json::Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
        let start = serde_json::json!({ "id": 3, "method": "run.start", "params": {
            "session_id": opened["result"]["session"]["session_id"], "text": text } });
        writer.write_all(format!("{start}\n").as_bytes()).await.unwrap();
        (lines, writer, task)
    }

    #[tokio::test]
    async fn it_ends_when_the_client_closes_its_side() {
        let Embedded { reader, mut writer, task } = embedded(HostOptions::default());
        writer.write_all(format!("{INITIALIZE}\n").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(reader).lines();
        assert!(lines.next_line().await.unwrap().unwrap().contains("workspace"));
        writer.shutdown().await.unwrap();
        assert_eq!(task.await.unwrap().unwrap(), Served::InputEnded);
        assert_eq!(lines.next_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn it_ends_when_the_client_is_dropped_in_the_middle_of_a_run() {
        let (mut lines, writer, task) = running("flood 10000000").await;
        lines.next_line().await.unwrap();
        drop((lines, writer));
        let ended = task.await.unwrap();
        assert!(ended.is_err() || ended.is_ok_and(|served| served == Served::InputEnded));
    }

    #[tokio::test]
    async fn a_crash_closes_the_pipes_and_leaves_the_process_alone() {
        let (mut lines, _writer, task) = running("crash 9").await;
        assert_eq!(task.await.unwrap().unwrap(), Served::Exit(9));
        while lines.next_line().await.unwrap().is_some() {}
    }
}

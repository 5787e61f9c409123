//! Faults of writing: the bytes are right, the pieces are not those that a client might hope for.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::Faults;

/// Pieces of one write. More would only take longer: a piece ends anywhere, also in a character.
const PIECES: usize = 6;

/// The pause between two pieces: long enough for a reader to see them apart.
const PIECE_PAUSE: Duration = Duration::from_millis(1);

/// How long lines are gathered before they are written together.
const JOIN_PAUSE: Duration = Duration::from_millis(15);

/// A way of writing that is allowed and unkind.
#[derive(Debug)]
pub(crate) enum WriteFault {
    /// In pieces.
    Split(fastrand::Rng),
    /// Late and all at once.
    Joined,
}

impl WriteFault {
    pub(crate) fn new(faults: &Faults, seed: u64) -> Option<WriteFault> {
        if faults.split {
            Some(WriteFault::Split(fastrand::Rng::with_seed(seed)))
        } else if faults.joined {
            Some(WriteFault::Joined)
        } else {
            None
        }
    }

    pub(crate) async fn write<W: AsyncWrite + Unpin>(&mut self, to: &mut W, bytes: &[u8]) -> io::Result<()> {
        match self {
            WriteFault::Split(rng) => {
                let mut cuts: Vec<usize> = (0..PIECES).map(|_| rng.usize(..=bytes.len())).collect();
                cuts.push(bytes.len());
                cuts.sort_unstable();
                let mut start = 0;
                for cut in cuts {
                    to.write_all(&bytes[start..cut]).await?;
                    to.flush().await?;
                    start = cut;
                    tokio::time::sleep(PIECE_PAUSE).await;
                }
            }
            WriteFault::Joined => {
                // What comes meanwhile waits in the outbox and is written with the next ones.
                to.write_all(bytes).await?;
                to.flush().await?;
                tokio::time::sleep(JOIN_PAUSE).await;
            }
        }
        Ok(())
    }
}

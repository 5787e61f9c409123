//! One API for apps that show and drive AI agents, whatever agent host stands behind it.

pub mod bubblepaw;
pub mod error;
pub mod model;

pub use error::{ErrorInfo, KitError, Outcome, Result};

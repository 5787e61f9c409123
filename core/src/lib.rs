//! One API for apps that show and drive AI agents, whatever agent host stands behind it.

pub mod error;
pub mod model;
pub mod rpc;

pub use error::{ErrorInfo, KitError, Outcome, Result};

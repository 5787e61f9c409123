//! The handshake: versions, features, the workspace.

use std::sync::Arc;

use kitport::bubblepaw::wire::{Initialize, InitializeResult, Party, Workspace, feature};

use super::request::Request;
use super::result;
use crate::failure::{Failure, INVALID_REQUEST, Outcome};
use crate::host::Host;
use crate::options::bits;

pub(super) fn initialize(host: &Arc<Host>, request: &Request<'_>, initialized: &mut bool) -> Outcome<String> {
    if *initialized {
        return Err(Failure::new(INVALID_REQUEST, "invalid request: already initialized"));
    }
    let asked = request.params::<Initialize>()?;
    let offered = &host.options.features;
    let mut features: Vec<String> = asked.features.into_iter().filter(|name| offered.contains(name)).collect();
    features.dedup();
    host.negotiate(bits::of_all(&features) & bits::of_all(feature::ALL));
    *initialized = true;
    if host.options.faults.future {
        features.push("telepathy".to_owned());
    }
    let path = &host.workspace;
    result::<Initialize>(&InitializeResult {
        // Another version than the client's is answered all the same: the client decides what to make of it.
        protocol_version: host.options.protocol_version.clone(),
        host: Party { name: "kitport-host".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        features,
        workspace: Workspace {
            path: path.to_string_lossy().into_owned(),
            name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        },
    })
}

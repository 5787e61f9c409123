//! Providers, the default model, configuration.

use std::sync::Arc;

use kitport::bubblepaw::wire::{ConfigSet, ProvidersList, ProvidersListResult, RolesSetMain, RolesSetMainResult};
use serde_json::Value;

use super::request::Request;
use super::{nothing, result};
use crate::failure::Outcome;
use crate::host::Host;
use crate::{providers, settings};

pub(super) fn providers(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    request.params::<ProvidersList>()?;
    host.read(|tx| {
        if !host.provider_enabled(tx.store)? {
            return result::<ProvidersList>(&ProvidersListResult {
                providers: Vec::new(),
                main: None,
                active_main: None,
            });
        }
        let main = host.main_model(tx.store)?;
        // A model without a key can be saved, but what is used then is the one that works.
        let usable = providers::find(&main).is_ok_and(|found| found.has_key);
        let active = if usable { main.clone() } else { providers::DEFAULT_MODEL.to_owned() };
        result::<ProvidersList>(&ProvidersListResult {
            providers: providers::all(),
            main: Some(main),
            active_main: Some(active),
        })
    })
}

pub(super) fn set_main(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<RolesSetMain>()?;
    providers::find(&asked.model)?;
    host.write(|tx| tx.store.set_config(settings::MODEL, &Value::String(asked.model.clone())))?;
    result::<RolesSetMain>(&RolesSetMainResult { main: asked.model })
}

pub(super) fn set_config(host: &Arc<Host>, request: &Request<'_>) -> Outcome<String> {
    let asked = request.params::<ConfigSet>()?;
    host.write(|tx| settings::set(tx.store, &asked.key, &asked.value))?;
    nothing()
}

//! `models`: what the host can reach, and the default.

use console::style;
use kitport::{AgentBackend, ChatReader};

use crate::app::App;
use crate::args::ModelsArgs;
use crate::failure::{Exit, Failure};
use crate::output::{Table, one_line};

/// The longest name in a list.
const NAME_CHARS: usize = 60;

pub(super) async fn run(app: &App, args: ModelsArgs) -> Result<Exit, Failure> {
    let providers = app
        .with_backend(async |kit| {
            if let Some(model) = &args.set {
                kit.set_default_model(model)
                    .await
                    .map_err(|error| Failure::from(error).hint_if("not_found", "`kitport models` lists the models"))?;
            }
            Ok(kit.list_providers().await?)
        })
        .await?;
    if app.out.json {
        app.out.json(&providers)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(["MODEL", "NAME", "WINDOW", "KEY", "DEFAULT"]);
    for provider in &providers.providers {
        for model in &provider.models {
            let is = |default: &Option<String>| default.as_deref() == Some(&model.id);
            let default = match (is(&providers.main), is(&providers.active_main)) {
                (true, true) => "saved and active",
                (true, false) => "saved",
                (false, true) => "active",
                (false, false) => "",
            };
            table.row([
                model.id.clone(),
                one_line(model.name.as_deref().unwrap_or_default(), NAME_CHARS),
                model.context_window.map(|window| window.to_string()).unwrap_or_default(),
                if provider.has_key { "found".to_owned() } else { style("none").yellow().to_string() },
                default.to_owned(),
            ]);
        }
    }
    for line in table.lines() {
        app.out.line(line)?;
    }
    Ok(Exit::Done)
}

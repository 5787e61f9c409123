//! `doctor`: who the host is and what it offers, with the reason for each thing that is off.

use console::style;
use kitport::ChatReader;
use kitport::model::{Capability, Constraints, Counters, HostInfo, ProvidedBy, SCHEMA_VERSION};
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::output::{Output, Table, clean};

pub(super) async fn run(app: &App) -> Result<Exit, Failure> {
    app.with_backend(async |kit| {
        // One round trip, so that the counters say something of the host, too.
        kit.list_chats(None, None).await?;
        let (host, constraints, counters) = (kit.host_info(), kit.constraints(), kit.counters());
        if app.out.json {
            let details = Capability::ALL.iter().map(|name| (name.name().to_owned(), json!(kit.detail(*name))));
            return Ok(app.out.json(&json!({
                "kitport": env!("CARGO_PKG_VERSION"),
                "schemaVersion": SCHEMA_VERSION,
                "host": host,
                "capabilities": Value::Object(details.collect::<Map<_, _>>()),
                "constraints": constraints,
                "counters": counters,
            }))?);
        }
        if let Some(host) = &host {
            show_host(app.out, host)?;
        }
        let head = |name: &str| app.out.line(format!("\n{}", style(name).bold()));
        head("Capabilities")?;
        let mut table = Table::default();
        for name in Capability::ALL {
            let detail = kit.detail(*name);
            let mark = if detail.on { style("✓").green() } else { style("✗").red() };
            let note = match (detail.on, detail.by, detail.why_off) {
                (true, ProvidedBy::Kit, _) => "by the kit".to_owned(),
                (_, _, why) => clean(&why.unwrap_or_default()).into_owned(),
            };
            table.row([mark.to_string(), name.name().to_owned(), style(note).dim().to_string()]);
        }
        table.lines().iter().try_for_each(|line| app.out.line(line))?;
        head("What inputs it takes")?;
        show_constraints(app.out, &constraints)?;
        head("What the connection met")?;
        show_counters(app.out, &counters)
    })
    .await?;
    Ok(Exit::Done)
}

fn show_host(out: Output, host: &HostInfo) -> Result<(), Failure> {
    out.line(format!("{} {}", style(clean(&host.name)).bold(), clean(&host.version)))?;
    out.line(format!("protocol {}", clean(&host.protocol_version)))?;
    if let Some(path) = host.workspace.as_ref().and_then(|workspace| workspace.path.as_deref()) {
        out.line(format!("works in {}", clean(path)))?;
    }
    out.line(format!("negotiated: {}", clean(&host.features.join(", "))))?;
    Ok(())
}

fn show_constraints(out: Output, constraints: &Constraints) -> Result<(), Failure> {
    let answers = constraints.question_answers;
    let mut table = Table::default();
    for (on, what) in [
        (constraints.references, "references beside a text"),
        (constraints.follow_up_while_running, "a text while a run goes on"),
        (answers.several_items, "answers to several items of a question"),
        (answers.several_choices, "several choices"),
        (answers.choice_and_text, "a choice and a text together"),
        (answers.skip, "a question left unanswered"),
    ] {
        let mark = if on { style("✓").green() } else { style("✗").red() };
        table.row([mark.to_string(), what.to_owned()]);
    }
    Ok(table.lines().iter().try_for_each(|line| out.line(line))?)
}

fn show_counters(out: Output, counters: &Counters) -> Result<(), Failure> {
    let mut table = Table::default();
    for (count, what) in [
        (counters.skipped_lines, "lines that were no message"),
        (counters.unknown_ids, "answers to no open request"),
        (counters.oversize, "lines over the limit"),
        (counters.malformed, "known notifications that did not fit"),
        (counters.host_requests, "requests of the host, refused"),
        (counters.gaps, "losses of live notifications, made good"),
        (counters.restarts, "starts anew"),
    ] {
        table.row([format!("{count:>6}"), what.to_owned()]);
    }
    Ok(table.lines().iter().try_for_each(|line| out.line(line))?)
}

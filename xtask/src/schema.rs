//! `cargo xtask schema`: the committed schema, `schema/kitport.schema.json`.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::command::root;

const FILE: &str = "schema/kitport.schema.json";

/// Writes it, or compares it with the one that is there.
pub(crate) fn run(check: bool) -> Result<()> {
    let schema = serde_json::to_string_pretty(&kitport::door::schema()).context("the schema has no JSON form")? + "\n";
    let path = root().join(FILE);
    if !check {
        fs::create_dir_all(path.parent().expect("the file is in a folder"))?;
        fs::write(&path, &schema).with_context(|| format!("{FILE} could not be written"))?;
        println!("{FILE}: {} lines", schema.lines().count());
        return Ok(());
    }
    // A checkout on Windows may have other line ends.
    let committed = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let lines = || committed.lines().map(Some).chain(std::iter::repeat(None)).zip(schema.lines());
    if committed == schema {
        println!("{FILE}: up to date");
        return Ok(());
    }
    if let Some((number, (old, new))) = lines().enumerate().find(|(_, (old, new))| *old != Some(*new)) {
        println!("{FILE}, line {}:\n- {}\n+ {new}", number + 1, old.unwrap_or_default());
    }
    bail!("{FILE} is not what the code says: run `cargo xtask schema` and commit it")
}

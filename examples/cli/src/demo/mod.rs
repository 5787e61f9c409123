//! stub
use crate::{
    app::App,
    args::DemoArgs,
    failure::{Exit, Failure},
};
pub(crate) async fn run(_app: &App, _args: DemoArgs) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}

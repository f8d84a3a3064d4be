//! The scripted model as a program: `scripted-model [PORT]`. Prints its address and serves until it is ended.

use testkit::scripted_model::ScriptedModel;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port = match std::env::args().nth(1) {
        Some(port) => port.parse()?,
        None => 0,
    };
    let model = ScriptedModel::listen(port).await?;
    println!("{}", model.url());
    model.run().await;
    Ok(())
}

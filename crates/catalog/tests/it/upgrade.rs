//! Data directories that earlier versions wrote, kept in `tests/data`.

use std::path::Path;

use protocol::AgentSessionId;

use crate::support::{Home, session_id};

fn write_version_0_1_0(home: &Home) {
    for name in ["projects.json", "sessions.json"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-0.1.0").join(name);
        home.write(name, &std::fs::read_to_string(file).unwrap());
    }
}

/// Version 0.1.0 changed a session's id together with the agent's. Its records have no `agentSessionId`.
#[tokio::test]
async fn a_directory_of_version_0_1_0_is_read_as_it_is_and_the_ids_in_it_stay() {
    let home = Home::new();
    write_version_0_1_0(&home);
    let before = home.json("sessions.json");
    let (codex, claude) = (
        session_id("codex:019a4f7e-2222-7222-8333-944455566677"),
        session_id("claude-code:5f1c2f7e-3c69-4f0e-8c4b-1d2f3a4b5c6d"),
    );
    {
        let catalog = home.open();
        let record = catalog.session(&codex).unwrap();
        assert_eq!((record.current_agent_id(), record.prompted), (codex.agent_session_id(), true));
        assert_eq!(record.options["mode"], "read-only");
        assert_eq!(home.json("sessions.json"), before, "opening it changes nothing");
        let agent_id = AgentSessionId::parse("019a4f7e-3333").unwrap();
        catalog.set_agent_session_id(&codex, &agent_id).await.unwrap();
    }
    let catalog = home.open();
    let record = catalog.session(&codex).unwrap();
    assert_eq!((record.current_agent_id().as_str(), record.prompted), ("019a4f7e-3333", false));
    assert_eq!(record.last_turn.unwrap().message, "Fix the rounding of degrees");
    assert_eq!(catalog.session(&claude).unwrap().current_agent_id(), claude.agent_session_id());
    let after = home.json("sessions.json");
    assert_eq!(after["sessions"][1], before["sessions"][1], "the other one is as it was");
}

//! Which crate knows which: what keeps an agent's wire from ever being wired to a window directly.

use std::path::Path;

fn dependencies(of: &str) -> Vec<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    let (_, rest) = text.split_once("\n[dependencies]\n").unwrap();
    let section = rest.split("\n[").next().unwrap();
    section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).map(str::to_owned).collect()
}

/// E TC-7.4a: an agent's output reaches a window through the provider and the hub, for there is no other way.
#[test]
fn what_drives_agents_knows_no_socket_and_what_serves_sockets_knows_no_agent() {
    for below in ["agent-process", "providers", "upserts", "sessions"] {
        for known in dependencies(below) {
            let is_wire =
                ["axum", "hyper", "hyper-util", "tokio-tungstenite", "tower", "server"].contains(&known.as_str());
            assert!(!is_wire, "{below} depends on {known}");
        }
    }
    let edge = dependencies("server");
    assert!(edge.contains(&"sessions".to_owned()), "{edge:?}");
    for known in edge {
        let is_agent =
            ["providers", "agent-process", "upserts", "agent-client-protocol-schema"].contains(&known.as_str());
        assert!(!is_agent, "server depends on {known}");
    }
}

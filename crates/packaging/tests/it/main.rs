//! What a release holds beside the program.

use std::path::Path;
use std::process::Command;

fn read(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_command_is_completed_and_described_and_every_crate_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_packaging")).arg(directory.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for name in ["liminal-builder.bash", "_liminal-builder", "liminal-builder.fish"] {
        let completions = read(&directory.path().join("completions"), name);
        for word in ["doctor", "attach", "data-dir"] {
            assert!(completions.contains(word), "{name} lacks {word}");
        }
    }
    let bash = read(&directory.path().join("completions"), "liminal-builder.bash");
    let chosen = bash.lines().filter_map(|line| line.trim().strip_prefix("cmd=\"")?.strip_suffix('"'));
    for command in chosen.filter(|command| !command.is_empty()) {
        let case = format!("{command})");
        assert!(bash.lines().any(|line| line.trim() == case), "bash completes nothing after {command}");
    }
    let manual = directory.path().join("man");
    assert!(read(&manual, "liminal-builder.1").contains("LIMINAL_PORT"));
    assert!(read(&manual, "liminal-builder-send.1").contains("Exit status"));
    let notices = read(directory.path(), "THIRD-PARTY-NOTICES.txt");
    for part in
        ["tokio ", "hyper ", "Permission is hereby granted", "K.Kosako", "definitions by which code is highlighted"]
    {
        assert!(notices.contains(part), "{part}");
    }
    for tool in ["clap_mangen ", "proptest ", "windows-core "] {
        assert!(!notices.contains(tool), "{tool} is not in the program");
    }
}

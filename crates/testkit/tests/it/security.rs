//! What `docs/SECURITY.md` names is there: every test, every fuzz target, every place with unsafe code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn document() -> String {
    std::fs::read_to_string(root().join("docs/SECURITY.md")).unwrap()
}

/// All Rust files of the workspace, with their paths from `crates` on.
fn sources() -> Vec<(String, String)> {
    let (mut found, mut directories) = (Vec::new(), vec![root().join("crates")]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// The rows of the table under a heading, without its own two lines.
fn rows<'a>(document: &'a str, heading: &str) -> Vec<&'a str> {
    let (_, section) = document.split_once(heading).unwrap();
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    section.lines().filter(|line| line.starts_with('|')).skip(2).collect()
}

fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// A test of this name in a file, or a directory, of that name.
fn has_test(sources: &[(String, String)], file: &str, test: &str) -> bool {
    let is_it = |path: &str| path.ends_with(&format!("/{file}.rs")) || path.contains(&format!("/{file}/"));
    sources.iter().filter(|(path, _)| is_it(path)).any(|(_, text)| {
        text.match_indices(&format!("fn {test}(")).any(|(at, _)| {
            let above = text[..at].rsplit("\n\n").next().unwrap_or_default();
            above.contains("#[test]") || above.contains("#[tokio::test")
        })
    })
}

#[test]
fn every_threat_is_answered_by_a_test_that_exists() {
    let (document, sources) = (document(), sources());
    let threats = rows(&document, "## Threats and answers");
    assert!(threats.len() > 20, "{} threats", threats.len());
    for threat in threats {
        let proof = threat.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        let mut proofs = 0;
        for name in in_backticks(proof) {
            let is_there = match name.split_once("::") {
                Some((file, test)) => has_test(&sources, file, test),
                None if name.ends_with(".js") => root().join(name).is_file(),
                None => root().join(format!("fuzz/fuzz_targets/{name}.rs")).is_file(),
            };
            assert!(is_there, "{name} is not there, and was to prove: {threat}");
            proofs += 1;
        }
        assert!(proofs > 0, "nothing proves: {threat}");
    }
}

#[test]
fn every_place_with_unsafe_code_is_accounted_for() {
    let document = document();
    let listed: BTreeSet<_> =
        rows(&document, "## Unsafe code").iter().filter_map(|row| in_backticks(row).next()).collect();
    let sources = sources();
    let is_let_in = |text: &str| ["expect", "allow"].iter().any(|how| text.contains(&format!("[{how}(unsafe_code")));
    let found: BTreeSet<_> =
        sources.iter().filter(|(_, text)| is_let_in(text)).map(|(path, _)| path.as_str()).collect();
    assert_eq!(listed, found);
}

//! Who wrote what is built into the program, and under which licence.
//!
//! Cargo knows every crate that the program is built from and where its sources are; their licence files are copied word
//! for word, each text once, also those of a library in another language that a crate brings in a directory of its own. Then
//! the definitions of languages, which are data inside a crate and have many authors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

/// Beginnings of the names of files that hold a licence or a notice.
const LICENCE_FILES: [&str; 5] = ["licen", "copying", "copyright", "notice", "unlicense"];
/// Longer files of such a name are no licences.
const TEXT_BYTES_MAX: u64 = 256 * 1024;
const RULE: &str = "--------------------------------------------------------------------------------";

pub(crate) fn write(file: &Path) -> anyhow::Result<()> {
    let metadata = metadata()?;
    let mut list = String::new();
    // One text, and all crates that come under it.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in used(&metadata)? {
        let name = format!("{} {}", text(package, "name"), text(package, "version"));
        list += &format!("{name}: {}\n", text(package, "license"));
        for licence in licence_files(package) {
            let text = std::fs::read(&licence).with_context(|| format!("could not read {}", licence.display()))?;
            texts.entry(String::from_utf8_lossy(&text).trim().to_owned()).or_default().push(name.clone());
        }
    }
    let mut notices = format!("Liminal Builder is built from these crates, besides its own:\n\n{list}");
    for (text, crates) in texts {
        notices += &format!("\n{RULE}\n{}\n\n{text}\n", crates.join(", "));
    }
    for licence in two_face::acknowledgement::listing().for_syntaxes() {
        let name = licence.rel_path.display();
        notices +=
            &format!("\n{RULE}\nThe definitions by which code is highlighted: {name}\n\n{}\n", licence.text.trim());
    }
    std::fs::write(file, notices).with_context(|| format!("could not write {}", file.display()))
}

fn metadata() -> anyhow::Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let asked = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", &platform()?])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .context("could not run cargo")?;
    ensure!(asked.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&asked.stderr));
    serde_json::from_slice(&asked.stdout).context("cargo metadata is not JSON")
}

/// This machine's, which is the one the program is built for: crates of other systems are not in it.
fn platform() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).arg("-vV").output().context("could not run rustc")?;
    let version = String::from_utf8_lossy(&asked.stdout);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say what it is for")
}

/// The crates of others that the program is linked from, by name: what tests and build scripts use is not among them.
fn used(metadata: &Value) -> anyhow::Result<Vec<&Value>> {
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).map(|package| (text(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).map(|node| (text(node, "id"), node)).collect();
    let program = packages.values().find(|package| text(package, "name") == crate::PROGRAM);
    let mut waiting = vec![text(program.context("cargo does not know the program")?, "id")];
    let mut found: BTreeMap<&str, &Value> = BTreeMap::new();
    while let Some(id) = waiting.pop() {
        let (Some(package), Some(node)) = (packages.get(id), nodes.get(id)) else { continue };
        if found.insert(id, package).is_some() {
            continue;
        }
        let linked = list(&node["deps"]).filter(|link| list(&link["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        waiting.extend(linked.map(|link| text(link, "pkg")));
    }
    let mut others: Vec<&Value> = found.into_values().filter(|package| package["source"].is_string()).collect();
    others.sort_by_key(|package| (text(package, "name"), text(package, "version")));
    Ok(others)
}

fn licence_files(package: &Value) -> Vec<PathBuf> {
    let Some(directory) = Path::new(text(package, "manifest_path")).parent() else { return Vec::new() };
    let entries_of = |directory: &Path| std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let below = entries_of(directory).filter(|entry| entry.path().is_dir()).flat_map(|entry| entries_of(&entry.path()));
    let mut files: Vec<PathBuf> = entries_of(directory)
        .chain(below)
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().to_lowercase();
            LICENCE_FILES.iter().any(|word| name.starts_with(word))
                && entry.metadata().is_ok_and(|file| file.is_file() && file.len() <= TEXT_BYTES_MAX)
        })
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

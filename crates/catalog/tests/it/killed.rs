//! SIGKILL in the middle of quick changes, fifty times over.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use catalog::Catalog;

use crate::support::{Home, fixture_program, session_id};

const ROUNDS: usize = 50;

#[test]
fn whenever_it_is_killed_the_files_are_whole_and_hold_every_confirmed_change() {
    for round in 0..ROUNDS {
        let home = Home::new();
        let confirmed = churn_and_kill(&home);
        for name in ["projects.json", "sessions.json"] {
            assert_eq!(home.json(name)["version"], 1, "{name} is whole");
        }
        let catalog = home.open();
        for (&(ref kind, worker), &step) in &confirmed {
            // The step after the last one that was confirmed was under way; it may have been written or not.
            let holds = match kind.as_str() {
                "session" => [step, step + 1].contains(&session_step(&catalog, worker, step)),
                _ => {
                    let found = project_numbers(&home, &catalog, worker);
                    found == projects_after(step) || found == projects_after(step + 1)
                }
            };
            assert!(holds, "round {round}: {kind} {worker} lost what was confirmed at step {step}");
        }
        assert!(home.names().iter().all(|name| !name.ends_with("tmp")), "{:?}", home.names());
    }
}

/// The last step that each worker reported was confirmed.
fn churn_and_kill(home: &Home) -> BTreeMap<(String, u64), u64> {
    let root = home.directory("code");
    let mut child =
        Command::new(fixture_program()).arg(home.data()).args(["churn", &root]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let random = RandomState::new().hash_one(0);
    let mut reported: Vec<_> = lines.by_ref().take(10 + (random % 80) as usize).map(Result::unwrap).collect();
    // Anywhere in the writes that follow, not always right after an answer.
    std::thread::park_timeout(Duration::from_micros(random % 5000));
    child.kill().unwrap();
    child.wait().unwrap();
    reported.extend(lines.map_while(Result::ok));
    // A line that was cut off in the middle confirms nothing.
    reported
        .iter()
        .filter_map(|line| serde_json::from_str::<(String, u64, u64)>(line).ok())
        .map(|(kind, worker, step)| ((kind, worker), step))
        .collect()
}

/// `near` or the step after it, whichever the record is in; otherwise a step that is neither.
fn session_step(catalog: &Catalog, worker: u64, near: u64) -> u64 {
    let record = catalog.session(&session_id(&format!("demo:{worker}")));
    let matches = |step: u64| {
        let last_title = step.checked_sub(1 - step % 2);
        let title = last_title.map_or("New Session".to_owned(), |step| format!("title {step}"));
        record.as_ref().is_some_and(|record| record.title == title && record.archived == (step % 4 >= 2))
    };
    [near, near + 1].into_iter().find(|step| matches(*step)).unwrap_or(u64::MAX)
}

/// Steps come in threes: add an even one, add the odd one after it, remove the even one.
fn projects_after(step: u64) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    for step in 0..=step {
        let even = 2 * (step / 3);
        match step % 3 {
            0 => numbers.insert(even),
            1 => numbers.insert(even + 1),
            _ => numbers.remove(&even),
        };
    }
    numbers
}

fn project_numbers(home: &Home, catalog: &Catalog, worker: u64) -> BTreeSet<u64> {
    let root = home.root().join("code").join(worker.to_string());
    let number = |path: &str| std::path::Path::new(path).strip_prefix(&root).ok()?.to_str()?.parse().ok();
    catalog.projects().iter().filter_map(|project| number(&project.path)).collect()
}

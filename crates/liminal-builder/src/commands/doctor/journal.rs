//! The journal: is it there, can it be read, is it sound, is there room for more? Nothing is changed.

use std::path::Path;

use journal::{CheckReport, Depth, Inspection, JournalError, Stats};

use super::Finding;
use crate::commands::journal::{count, size};
use crate::settings::JournalSetting;

const JOURNAL: &str = "Journal";
const DAMAGED: &str = "Damaged journal";
const ROOM: &str = "Journal's disk";
/// A larger file is read with `--deep` only: that takes a while.
const CHECKED_BYTES_MAX: u64 = 1 << 30;
/// With less, a long turn may fill the disk.
const ROOM_BYTES_MIN: u64 = 1 << 30;

pub(super) fn look(data_dir: &Path, setting: JournalSetting, deep: bool) -> Vec<Finding> {
    let Inspection { path, stats, set_aside } = match journal::inspect(data_dir) {
        Ok(found) => found,
        Err(error) => {
            let mut findings = vec![unreadable(&error)];
            findings.extend(damaged(&journal::set_aside(data_dir)));
            return findings;
        }
    };
    let mut findings = Vec::new();
    match stats {
        Some(stats) => {
            findings.push(state(data_dir, &stats, deep));
            findings.extend(room(&stats));
        }
        None if setting == JournalSetting::On => {
            findings.push(Finding::ok(JOURNAL, format!("{} is made at the first start", path.display())));
        }
        None => {}
    }
    if setting == JournalSetting::Off {
        let advice = "Start without `--journal off` (LIMINAL_JOURNAL) to record what is said.";
        findings.push(Finding::note(JOURNAL, "off: what is said is lost when the server stops", advice));
    }
    findings.extend(damaged(&set_aside));
    findings
}

fn state(data_dir: &Path, stats: &Stats, deep: bool) -> Finding {
    let (items, sessions) = (count(stats.items, "item"), count(stats.sessions.len() as u64, "session"));
    let kept = format!("{}, {items} of {sessions}, format {}", size(stats.file_bytes), stats.format);
    if stats.file_bytes > CHECKED_BYTES_MAX && !deep {
        return Finding::ok(JOURNAL, format!("{kept}; not checked, because it is large: `doctor --deep` does"));
    }
    let depth = if deep { Depth::Whole } else { Depth::Quick };
    match journal::check_file(data_dir, depth) {
        Ok(report) => match first_defect(report.unwrap_or_default()) {
            None => Finding::ok(JOURNAL, format!("{kept}; no damage found")),
            Some(defect) => Finding::problem(
                JOURNAL,
                format!("{kept}; damaged: {defect}"),
                "`liminal-builder journal check` lists the damage. A copy of journal.db is worth making now.",
            ),
        },
        Err(error) => unreadable(&error),
    }
}

fn first_defect(report: CheckReport) -> Option<String> {
    report.damage.into_iter().chain(report.contradictions).next()
}

fn room(stats: &Stats) -> Option<Finding> {
    let free = stats.disk_free_bytes?;
    // What is deleted, or compacted, is written once more before the space is free.
    let is_low = free < ROOM_BYTES_MIN || free < stats.file_bytes;
    Some(match is_low {
        false => Finding::ok(ROOM, format!("{} free", size(free))),
        true => Finding::note(
            ROOM,
            format!("{} free, beside a journal of {}", size(free), size(stats.file_bytes)),
            "Make room, or delete old turns with `liminal-builder journal prune --older-than 90d`.",
        ),
    })
}

fn damaged(set_aside: &[std::path::PathBuf]) -> Option<Finding> {
    let names: Vec<_> = set_aside.iter().map(|path| path.display().to_string()).collect();
    (!names.is_empty()).then(|| {
        let advice =
            "The conversations in them can still be there: keep them, or delete them when you need them no more.";
        Finding::note(DAMAGED, format!("set aside: {}", names.join(", ")), advice)
    })
}

fn unreadable(error: &JournalError) -> Finding {
    let advice = match error {
        JournalError::NewerVersion { .. } => "Use the newer Liminal Builder; this one changes nothing.",
        _ => "Check the file's permissions and disk. A damaged file is set aside at the next start, never overwritten.",
    };
    Finding::problem(JOURNAL, error.to_string(), advice)
}

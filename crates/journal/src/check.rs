//! Reads everything and reports what is damaged, or cannot be true.

use rusqlite::Connection;

use crate::append::cached;
use crate::failure::{Failure, Outcome};
use crate::record::CheckReport;

/// Beyond these, more of the same tells nobody anything.
const FINDINGS_MAX: usize = 100;

/// How much of the file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The order of pages and rows.
    Quick,
    /// All of it, with the indexes and the numbers of each session.
    Whole,
}

/// Damage is a finding here, not a failure.
pub(crate) fn check(connection: &Connection, depth: Depth) -> Outcome<CheckReport> {
    let mut report = CheckReport::default();
    keep_going(&mut report, |report| engine(connection, depth, report))?;
    if depth == Depth::Whole {
        keep_going(&mut report, |report| sessions(connection, report))?;
    }
    keep_going(&mut report, |report| {
        let items: i64 = connection.query_row(
            "SELECT (SELECT count(*) FROM item) + (SELECT count(*) FROM open_item)",
            [],
            |row| row.get(0),
        )?;
        report.items = u64::try_from(items).unwrap_or(0);
        Ok(())
    })?;
    Ok(report)
}

fn keep_going(report: &mut CheckReport, step: impl FnOnce(&mut CheckReport) -> Outcome<()>) -> Outcome<()> {
    match step(report) {
        Err(failure) if failure.kind() == crate::FailureKind::Damaged => {
            report.damage.push(match failure {
                Failure::Sqlite(error) => error.to_string(),
                Failure::Refused(text) | Failure::Unreadable(text) => text,
            });
            Ok(())
        }
        other => other,
    }
}

fn engine(connection: &Connection, depth: Depth, report: &mut CheckReport) -> Outcome<()> {
    let pragma = if depth == Depth::Quick { "quick_check" } else { "integrity_check" };
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}({FINDINGS_MAX})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let finding: String = row.get(0)?;
        if finding != "ok" {
            report.damage.push(finding);
        }
    }
    Ok(())
}

struct Session {
    key: i64,
    name: String,
    seq: i64,
    items: i64,
    bytes: i64,
    pruned_seq: i64,
}

fn sessions(connection: &Connection, report: &mut CheckReport) -> Outcome<()> {
    let transaction = connection.unchecked_transaction()?;
    let mut statement = cached(
        &transaction,
        "SELECT id, name, seq, items, bytes, pruned_seq FROM session WHERE name IS NOT NULL ORDER BY id",
    )?;
    let sessions = statement.query_map([], |row| {
        Ok(Session {
            key: row.get(0)?,
            name: row.get(1)?,
            seq: row.get(2)?,
            items: row.get(3)?,
            bytes: row.get(4)?,
            pruned_seq: row.get(5)?,
        })
    })?;
    for session in sessions {
        let session = session?;
        for finding in contradictions(&transaction, &session)? {
            if report.contradictions.len() < FINDINGS_MAX {
                report.contradictions.push(format!("{}: {finding}", session.name));
            }
        }
    }
    Ok(())
}

/// A row's place, whatever it is a row of.
struct Place {
    first: i64,
    last: i64,
    position: i64,
    is_item: bool,
}

fn contradictions(connection: &Connection, session: &Session) -> Outcome<Vec<String>> {
    let mut findings = Vec::new();
    let places = places(connection, session.key)?;
    numbers(session, &places, &mut findings);
    let mut positions: Vec<(bool, i64)> = places.iter().map(|place| (place.is_item, place.position)).collect();
    positions.sort_unstable();
    for (is_item, position) in repeated(&positions) {
        let what = if is_item { "items" } else { "turns" };
        findings.push(format!("two {what} have the position {position}"));
    }
    let (items, bytes) = counted(connection, session.key)?;
    if items != session.items {
        findings.push(format!("it should have {} items and has {items}", session.items));
    }
    if bytes != session.bytes {
        findings.push(format!("it should have {} bytes and has {bytes}", session.bytes));
    }
    open_items(connection, session.key, &mut findings)?;
    Ok(findings)
}

fn places(connection: &Connection, session: i64) -> Outcome<Vec<Place>> {
    let mut statement = cached(
        connection,
        "SELECT first, last, position, 1 FROM item WHERE session = ?1
         UNION ALL SELECT first, last, position, 1 FROM open_item WHERE session = ?1
         UNION ALL SELECT first, last, ifnull(position, 0), 0 FROM turn WHERE session = ?1 AND last IS NOT NULL",
    )?;
    let places = statement.query_map([session], |row| {
        Ok(Place { first: row.get(0)?, last: row.get(1)?, position: row.get(2)?, is_item: row.get(3)? })
    })?;
    Ok(places.collect::<rusqlite::Result<_>>()?)
}

/// The rows cover 1 to the session's last number, except for what was pruned, and no two end with the same one.
fn numbers(session: &Session, places: &[Place], findings: &mut Vec<String>) {
    let mut ranges: Vec<(i64, i64)> = places.iter().map(|place| (place.first, place.last)).collect();
    ranges.sort_unstable();
    let mut covered = session.pruned_seq;
    for (first, last) in &ranges {
        if *first > covered + 1 {
            findings.push(format!("the numbers {} to {} are missing", covered + 1, first - 1));
        }
        if first > last || *first < 1 {
            findings.push(format!("a row has the numbers {first} to {last}"));
        }
        covered = covered.max(*last);
    }
    if covered != session.seq {
        findings.push(format!("its last number should be {} and is {covered}", session.seq));
    }
    let mut lasts: Vec<i64> = places.iter().map(|place| place.last).collect();
    lasts.sort_unstable();
    for last in repeated(&lasts) {
        findings.push(format!("two rows end with the number {last}"));
    }
}

fn repeated<T: Copy + PartialEq>(sorted: &[T]) -> impl Iterator<Item = T> {
    sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

fn counted(connection: &Connection, session: i64) -> Outcome<(i64, i64)> {
    Ok(cached(
        connection,
        "SELECT count(*), ifnull(sum(bytes), 0) FROM (
           SELECT ifnull(octet_length(text), 0) + ifnull(octet_length(arguments), 0)
             + ifnull(octet_length(detail), 0) AS bytes FROM item WHERE session = ?1
           UNION ALL SELECT ifnull(text_bytes, 0) + ifnull(octet_length(arguments), 0)
             + ifnull(octet_length(detail), 0) FROM open_item WHERE session = ?1)",
    )?
    .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

/// An open item is not settled as well, and its pieces are as long as its row says.
fn open_items(connection: &Connection, session: i64, findings: &mut Vec<String>) -> Outcome<()> {
    let mut statement = cached(
        connection,
        "SELECT item_id, ifnull(text_bytes, 0), (SELECT ifnull(sum(octet_length(text)), 0) FROM open_text
         WHERE item = open_item.id), EXISTS (SELECT 1 FROM item
         WHERE item.session = open_item.session
         AND substr(item.item_id, -12) = substr(open_item.item_id, -12) AND item.item_id = open_item.item_id)
         FROM open_item WHERE session = ?1",
    )?;
    let mut rows = statement.query([session])?;
    while let Some(row) = rows.next()? {
        let item: String = row.get(0)?;
        let (expected, found): (i64, i64) = (row.get(1)?, row.get(2)?);
        if expected != found {
            findings.push(format!("item {item} should have {expected} bytes of text and has {found}"));
        }
        if row.get(3)? {
            findings.push(format!("item {item} is settled and open"));
        }
    }
    let mut statement =
        cached(connection, "SELECT item_id FROM item WHERE session = ?1 GROUP BY item_id HAVING count(*) > 1")?;
    for item in statement.query_map([session], |row| row.get::<_, String>(0))? {
        findings.push(format!("item {} is settled twice", item?));
    }
    Ok(())
}

//! Clears what deleted rows leave in the files.
//!
//! SQLite's `secure_delete` overwrites a row where it was deleted, and pages that become free. But when rows move to
//! another page because a neighbour went, their old bytes stay in the unused middle of the page they left, and nothing
//! overwrites them when the rows are deleted later. Here that middle is cleared, page by page. Last, the write-ahead log
//! is emptied: it holds pages as they were.

use rusqlite::{Connection, OptionalExtension, params};

use crate::append::cached;
use crate::error::{FailureKind, JournalError};
use crate::failure::{Failure, Outcome};
use crate::writer::{Sync, Writer};

/// Pages that are looked at in one transaction.
const CHUNK_PAGES: i64 = 2000;

/// Each try waits for readers as long as a lock is waited for.
const CHECKPOINT_TRIES: usize = 4;

/// The page that SQLite leaves out, as locks are held on its bytes.
const LOCK_BYTE: i64 = 0x4000_0000;

impl Writer {
    pub(crate) fn clear_traces(&mut self) -> Result<(), JournalError> {
        if self.path.is_none() {
            return Ok(());
        }
        self.clear_pages().map_err(|failure| failure.on_write())?;
        self.empty_log()
    }

    fn clear_pages(&mut self) -> Outcome<()> {
        if !has_pages(&self.connection)? {
            // Built without it: the slow way, which writes every page anew.
            return Ok(self.connection.execute_batch("VACUUM")?);
        }
        let page_bytes: i64 = self.connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let mut first = 1;
        loop {
            let count: i64 = self.connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            if first > count {
                return Ok(());
            }
            let end = (first + CHUNK_PAGES).min(count + 1);
            self.transact(Sync::Later, |connection| {
                (first..end).try_for_each(|page| clear_page(connection, page, page_bytes))
            })?;
            first = end;
            self.serve_waiting();
        }
    }

    /// Moves the write-ahead log into the file and cuts it to nothing.
    fn empty_log(&mut self) -> Result<(), JournalError> {
        for _ in 0..CHECKPOINT_TRIES {
            let is_busy: bool = self
                .connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
                .map_err(|error| Failure::from(error).on_write())?;
            if !is_busy {
                self.unsynced_since = None;
                return Ok(());
            }
            self.serve_waiting();
        }
        let detail = "another program reads the file, so deleted text is still in its write-ahead log; end that \
                      program and delete again";
        Err(JournalError::Write { kind: FailureKind::Locked, detail: detail.into() })
    }
}

fn has_pages(connection: &Connection) -> Outcome<bool> {
    let sql = "SELECT 1 FROM pragma_module_list WHERE name = 'sqlite_dbpage'";
    Ok(connection.query_row(sql, [], |_| Ok(())).optional()?.is_some())
}

fn clear_page(connection: &Connection, page: i64, page_bytes: i64) -> Outcome<()> {
    // Pages that say where others are have another form. The first is page 2; one on the locked page moves on by one.
    let is_map = |page: i64| page >= 2 && (page - 2) % (page_bytes / 5 + 1) == 0;
    let locked = LOCK_BYTE / page_bytes + 1;
    if is_map(page) || page == locked || (page == locked + 1 && is_map(locked)) {
        return Ok(());
    }
    let mut read = cached(connection, "SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
    let cleared: Option<Vec<u8>> = read
        .query_row([page], |row| Ok(row.get_ref(0)?.as_blob().ok().and_then(|data| cleared(page, data))))
        .optional()?
        .flatten();
    if let Some(data) = cleared {
        cached(connection, "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?.execute(params![page, data])?;
    }
    Ok(())
}

/// The page with nothing in its unused middle. None: it holds no rows, or nothing is there.
fn cleared(page: i64, data: &[u8]) -> Option<Vec<u8>> {
    let header = if page == 1 { 100 } else { 0 };
    // Leaves of tables and indexes, and inner pages of indexes. Inner pages of tables hold numbers only.
    let header_bytes = match data.get(header)? {
        0x0d | 0x0a => 8,
        0x02 => 12,
        _ => return None,
    };
    let number = |at: usize| Some(usize::from(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?])));
    let begin = header + header_bytes + 2 * number(header + 3)?;
    let end = match number(header + 5)? {
        0 => 65536,
        end => end,
    };
    if data.get(begin..end)?.iter().all(|byte| *byte == 0) {
        return None;
    }
    let mut cleared = data.to_vec();
    cleared.get_mut(begin..end)?.fill(0);
    Some(cleared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(kind: u8, cells: u8, content: u16) -> Vec<u8> {
        let mut data = vec![7; 512];
        data[..8].copy_from_slice(&[kind, 0, 0, 0, cells, content.to_be_bytes()[0], content.to_be_bytes()[1], 0]);
        data
    }

    #[test]
    fn this_build_has_the_quick_way() {
        assert!(has_pages(&Connection::open_in_memory().unwrap()).unwrap());
    }

    #[test]
    fn the_middle_of_a_leaf_is_cleared_and_nothing_else() {
        let data = page(0x0d, 2, 400);
        let cleared = cleared(3, &data).unwrap();
        assert_eq!((&cleared[..12], &cleared[400..]), (&data[..12], &data[400..]));
        assert!(cleared[12..400].iter().all(|byte| *byte == 0));
        assert_eq!(super::cleared(3, &cleared), None);
    }

    #[test]
    fn a_page_that_is_no_leaf_or_contradicts_itself_is_left_alone() {
        for data in [page(0, 2, 400), page(0x05, 2, 400), page(0x0d, 2, 600), page(0x0d, 255, 300), vec![], vec![0x0d]]
        {
            assert_eq!(cleared(3, &data), None);
        }
    }
}

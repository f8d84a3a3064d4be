//! All turns of a session, as far as needed to recognise them in the agent's own history.

use std::collections::HashMap;

use protocol::{ItemId, Timestamp, TurnId};
use rusqlite::Connection;

use crate::append::{cached, open_text};
use crate::failure::{Failure, Outcome};
use crate::item_row::id;
use crate::record::{SessionKey, TurnOutline};
use crate::turn_row;

/// How much of an agent's answer is enough to recognise it.
const ANSWER_CHARS_MAX: usize = 400;

/// Where the text of a message is.
#[derive(Clone, Copy)]
enum TextRow {
    Settled(i64),
    Open(i64),
}

/// A turn on the way to its outline.
struct Draft {
    outline: TurnOutline,
    prompt: Option<TextRow>,
    answer: Option<TextRow>,
}

pub(crate) fn outline(connection: &Connection, session: SessionKey) -> Outcome<Vec<TurnOutline>> {
    let transaction = connection.unchecked_transaction()?;
    let mut drafts = turns(&transaction, session)?;
    add_items(&transaction, session, &mut drafts)?;
    let mut outlines = Vec::with_capacity(drafts.len());
    for Draft { mut outline, prompt, answer } in drafts.into_values() {
        if outline.position == i64::MAX {
            continue;
        }
        outline.prompt = prompt.map(|row| text(&transaction, row)).transpose()?;
        outline.answer = answer.map(|row| text(&transaction, row)).transpose()?.map(beginning);
        outlines.push(outline);
    }
    outlines.sort_by_key(|outline| outline.position);
    Ok(outlines)
}

fn turns(connection: &Connection, session: SessionKey) -> Outcome<HashMap<i64, Draft>> {
    let mut statement = cached(
        connection,
        "SELECT turn_id, ifnull(origin, 'live'), position, started_at, ifnull(status, '') <> 'running', is_forgotten, id
         FROM turn WHERE session = ?1",
    )?;
    let mut rows = statement.query([session.0])?;
    let mut drafts = HashMap::new();
    while let Some(row) = rows.next()? {
        // Of a turn without a record, such as a notice between turns, only the items are known.
        let position = row.get::<_, Option<i64>>(2)?.unwrap_or(i64::MAX);
        let outline = TurnOutline {
            turn_id: id::<TurnId>(row, 0)?,
            origin: turn_row::origin(row, 1)?,
            position,
            started_at: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_unix_ms).unwrap_or_default(),
            has_ended: row.get(4)?,
            is_forgotten: row.get(5)?,
            prompt: None,
            answer: None,
            items: Vec::new(),
            last_position: if position == i64::MAX { i64::MIN } else { position },
        };
        drafts.insert(row.get(6)?, Draft { outline, prompt: None, answer: None });
    }
    Ok(drafts)
}

fn add_items(connection: &Connection, session: SessionKey, drafts: &mut HashMap<i64, Draft>) -> Outcome<()> {
    let mut statement = cached(
        connection,
        "SELECT turn, item_id, kind, position, id, 1, parent IS NULL FROM item WHERE session = ?1
         UNION ALL SELECT turn, item_id, kind, position, id, 0, parent IS NULL FROM open_item WHERE session = ?1
         ORDER BY 4",
    )?;
    let mut rows = statement.query([session.0])?;
    while let Some(row) = rows.next()? {
        let Some(draft) = drafts.get_mut(&row.get::<_, i64>(0)?) else { continue };
        draft.outline.items.push(id::<ItemId>(row, 1)?);
        let position = row.get(3)?;
        draft.outline.position = draft.outline.position.min(position);
        draft.outline.last_position = draft.outline.last_position.max(position);
        let source = if row.get(5)? { TextRow::Settled(row.get(4)?) } else { TextRow::Open(row.get(4)?) };
        // What a sub-agent is asked and answers is not the turn's own.
        let is_own: bool = row.get(6)?;
        match row.get_ref(2)?.as_str() {
            Ok("user") if is_own => draft.prompt = draft.prompt.or(Some(source)),
            Ok("agent") if is_own => draft.answer = draft.answer.or(Some(source)),
            _ => {}
        }
    }
    Ok(())
}

fn text(connection: &Connection, row: TextRow) -> Outcome<String> {
    match row {
        TextRow::Open(id) => open_text(connection, id),
        TextRow::Settled(id) => {
            let text: Option<String> = cached(connection, "SELECT text FROM item WHERE id = ?1")?
                .query_row([id], |row| row.get(0))
                .map_err(Failure::from)?;
            Ok(text.unwrap_or_default())
        }
    }
}

fn beginning(mut answer: String) -> String {
    if let Some((end, _)) = answer.char_indices().nth(ANSWER_CHARS_MAX) {
        answer.truncate(end);
    }
    answer
}

CREATE TABLE meta (
  -- About this file: journal_id (random, made with the file) and created_at.
  -- All times in this file are milliseconds since 1970, UTC. To read one: datetime(at / 1000, 'unixepoch').
  -- To read conversations, begin with: SELECT * FROM conversation;
  key TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
  -- One row per session. A session numbers its changes 1, 2, 3 ...; the numbers never begin again.
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,              -- <agent type>:<the agent's own id>; NULL while the session is being deleted
  epoch INTEGER NOT NULL,        -- rises whenever a server takes the session over
  seq INTEGER NOT NULL,          -- the number of the last change
  position INTEGER NOT NULL,     -- the highest position of an item or a turn
  items INTEGER NOT NULL,        -- how many items it has, open ones included
  bytes INTEGER NOT NULL,        -- bytes of their text, arguments and detail
  pruned_seq INTEGER NOT NULL,   -- the last number of a row that was pruned; 0: none was
  is_complete INTEGER NOT NULL   -- 1: the agent's own history is here from its beginning
) STRICT;

CREATE TABLE facts (
  -- What the agent reports beside the conversation: plan, options, commands, use of its context. JSON.
  session INTEGER PRIMARY KEY REFERENCES session (id),
  facts TEXT NOT NULL
) STRICT;

CREATE TABLE epoch (
  -- When a server took a session over, and the first number it could give.
  session INTEGER NOT NULL REFERENCES session (id),
  epoch INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  PRIMARY KEY (session, epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (
  -- From one message of the user to the agent's stop.
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES session (id),
  turn_id TEXT NOT NULL,
  position INTEGER,              -- display order, in front of its first item
  first INTEGER,                 -- the numbers of its changes are first .. last
  last INTEGER,
  origin TEXT,                   -- live: it ran here; agent: read from the agent's own history
  status TEXT,                   -- running, completed, cancelled, error; NULL: so far only items of it were recorded
  started_at INTEGER,            -- NULL: unknown
  ended_at INTEGER,
  model TEXT,
  usage TEXT,                    -- tokens and cost, JSON
  error_code TEXT,
  error_message TEXT,
  is_forgotten INTEGER NOT NULL DEFAULT 0, -- 1: the agent has removed it from its own history
  UNIQUE (session, turn_id)
) STRICT;
CREATE INDEX turn_by_position ON turn (session, position);
CREATE INDEX turn_by_last ON turn (session, last);
CREATE INDEX turn_running ON turn (session) WHERE status = 'running';

CREATE TABLE item (
  -- What was said or done, once it has ended: a message, a thought, a tool call. When such an item changes later, its
  -- row is replaced by a new one, so ids order the changes of all sessions.
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session (id),
  turn INTEGER NOT NULL REFERENCES turn (id),
  item_id TEXT NOT NULL,
  parent TEXT,                   -- the item_id of the tool call whose sub-agent it belongs to
  position INTEGER NOT NULL,     -- display order inside the session
  first INTEGER NOT NULL,        -- the numbers of its changes are first .. last
  last INTEGER NOT NULL,
  kind TEXT NOT NULL,            -- user, agent, system: a message of one of them; thinking; tool: a tool call
  failed INTEGER NOT NULL,       -- 1: it ended with an error
  at INTEGER,                    -- when it happened; NULL: unknown
  sent_after INTEGER NOT NULL,   -- how many milliseconds later it was sent to windows; after 1970 where at is NULL
  name TEXT,                     -- the tool's name; of a thought: the provider
  call_id TEXT,                  -- the agent's id of the tool call; NULL: the same as item_id
  started_at INTEGER,            -- when the tool began to run
  ended_at INTEGER,              -- when it stopped
  output_failed INTEGER,         -- 1: the tool says that its output is an error; 0: that it is none
  error TEXT,                    -- code and message, JSON
  arguments TEXT,                -- of the tool call, JSON
  detail TEXT,                   -- more of the tool call: kind, title, files, diffs, images, permission. JSON;
                                 -- sameAs names a text that stands in arguments or in text already
  text TEXT                      -- the message, the thought, or the tool's output; NULL: the tool had no output
) STRICT;
CREATE INDEX item_by_position ON item (session, position);
CREATE INDEX item_by_last ON item (session, last);
CREATE INDEX item_by_item_id ON item (
  -- The end of an id is enough to find it, and much shorter.
  session, substr(item_id, -12)
);

CREATE TABLE open_item (
  -- Items that have not ended. They become rows of the table item; columns as there.
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES session (id),
  turn INTEGER NOT NULL REFERENCES turn (id),
  item_id TEXT NOT NULL,
  parent TEXT,
  position INTEGER NOT NULL,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,          -- create, update
  at INTEGER,
  sent_after INTEGER NOT NULL,
  name TEXT,
  call_id TEXT,
  started_at INTEGER,
  ended_at INTEGER,
  output_failed INTEGER,
  error TEXT,
  arguments TEXT,
  detail TEXT,
  text_bytes INTEGER,            -- how many bytes of text the table open_text holds; NULL: there is no text
  UNIQUE (session, item_id)
) STRICT;

CREATE TABLE open_text (
  -- The text of an open item, in pieces as it came.
  item INTEGER NOT NULL REFERENCES open_item (id),
  from_byte INTEGER NOT NULL,    -- where the piece begins in the item's text
  text TEXT NOT NULL,
  PRIMARY KEY (item, from_byte)
) STRICT, WITHOUT ROWID;

CREATE VIEW conversation AS
  -- Everything said, readable: SELECT * FROM conversation WHERE session = 'codex:...';
  SELECT session.name AS session, turn.turn_id AS turn, datetime(item.at / 1000, 'unixepoch') AS at, item.kind,
    item.name, item.text, item.arguments, item.detail
  FROM item JOIN session ON session.id = item.session JOIN turn ON turn.id = item.turn
  ORDER BY item.session, item.position;

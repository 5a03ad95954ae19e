-- How long a key is good for. Until expires_at its answer is replayed. Then the
-- answer is dropped and the row stays as a tombstone, with the status "expired";
-- its expires_at is when that may be forgotten, NULL for never. So one column and
-- one index serve both ends.

ALTER TABLE pawl.command ADD COLUMN forget_at timestamptz;
COMMENT ON COLUMN pawl.command.forget_at IS 'Until when the tombstone stays, where the caller asked for another time than the workflow''s; infinity for ever.';
COMMENT ON COLUMN pawl.command.expires_at IS 'Until when the answer is replayed; after it the key is refused and never runs again. Of a tombstone: when it may be forgotten; NULL for never.';

CREATE TABLE pawl.horizon (
	workflow     text COLLATE "C" PRIMARY KEY CHECK (octet_length(workflow) BETWEEN 1 AND 64),
	replay       interval NOT NULL CHECK (replay > interval '0'),
	tombstone    interval CHECK (tombstone >= interval '0'),
	history      boolean NOT NULL DEFAULT false,
	history_kept interval CHECK (history_kept > interval '0'),
	CHECK (history OR history_kept IS NULL)
);
COMMENT ON TABLE pawl.horizon IS 'How long the keys of each workflow are good for, as the newest definition says that a node has started with.';
COMMENT ON COLUMN pawl.horizon.workflow IS 'The name of the workflow.';
COMMENT ON COLUMN pawl.horizon.replay IS 'How long an answer is replayed, from when it was given.';
COMMENT ON COLUMN pawl.horizon.tombstone IS 'How long the tombstone stays after that; NULL for ever.';
COMMENT ON COLUMN pawl.horizon.history IS 'Whether what is finished goes to command_history when its answer expires.';
COMMENT ON COLUMN pawl.horizon.history_kept IS 'How long it stays there; NULL for ever.';

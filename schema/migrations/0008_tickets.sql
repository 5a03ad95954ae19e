-- Tickets: the keys that sign them. A ticket itself is nowhere stored.
-- docs/decisions/0021-tickets.md says why it is so.

-- Whoever adds or removes a key locks the table first, so that two nodes make one. Secrets are made here: none is ever a
-- parameter of a statement, which could be in the log of the server.
CREATE TABLE pawl.ticket_key (
	id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	secret     bytea NOT NULL DEFAULT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
		CHECK (octet_length(secret) = 32),
	created_at timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (isfinite(created_at))
);
COMMENT ON TABLE pawl.ticket_key IS 'The keys that sign tickets. Who can read them can make tickets.';
COMMENT ON COLUMN pawl.ticket_key.id IS 'How a ticket names its key.';
COMMENT ON COLUMN pawl.ticket_key.secret IS 'The secret of HS256: 32 bytes, of which 244 bits are random.';
COMMENT ON COLUMN pawl.ticket_key.created_at IS 'When it was made. The newest signs, for a day; a key verifies for an hour longer, and is removed then.';

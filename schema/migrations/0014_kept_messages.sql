-- needs: 8

CREATE TABLE pawl.inbox_kept (
	tenant      text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	consumer    text COLLATE "C" NOT NULL CHECK (octet_length(consumer) BETWEEN 1 AND 249),
	message     text COLLATE "C" NOT NULL CHECK (octet_length(message) BETWEEN 1 AND 255),
	hash        bytea NOT NULL CHECK (octet_length(hash) = 32),
	received_at timestamptz NOT NULL,
	keep_until  timestamptz NOT NULL,
	headers     bytea NOT NULL,
	body        bytea NOT NULL,
	PRIMARY KEY (tenant, consumer, message, hash)
);
COMMENT ON TABLE pawl.inbox_kept IS 'Messages as they were received, for the time that their consumer declares.';
COMMENT ON COLUMN pawl.inbox_kept.tenant IS 'The tenant of the message.';
COMMENT ON COLUMN pawl.inbox_kept.consumer IS 'The consumer of the message.';
COMMENT ON COLUMN pawl.inbox_kept.message IS 'The sender''s id of the message.';
COMMENT ON COLUMN pawl.inbox_kept.hash IS 'SHA-256 of its body: two messages with one id are two rows.';
COMMENT ON COLUMN pawl.inbox_kept.received_at IS 'The time of its first delivery.';
COMMENT ON COLUMN pawl.inbox_kept.keep_until IS 'The time after which retention deletes it.';
COMMENT ON COLUMN pawl.inbox_kept.headers IS 'The headers of its first delivery, including the signature: a line "Name: value" for each value.';
COMMENT ON COLUMN pawl.inbox_kept.body IS 'Its body.';

-- For lists by consumer.
CREATE INDEX inbox_kept_list ON pawl.inbox_kept (tenant, consumer, received_at, message, hash);
-- For retention.
CREATE INDEX inbox_kept_over ON pawl.inbox_kept (keep_until);

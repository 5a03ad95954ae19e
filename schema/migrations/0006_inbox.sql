-- A message that comes in is a command: its scope is "inbox:" and the consumer,
-- its key the sender's id, its fingerprint the hash of its body. So the inbox needs
-- no table but one for messages that did not become a command, or were refused.

DROP FUNCTION pawl.consume, pawl.purge;
DROP TABLE pawl.inbox;

CREATE TABLE pawl.inbox_dead (
	tenant     text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	consumer   text COLLATE "C" NOT NULL CHECK (octet_length(consumer) BETWEEN 1 AND 249),
	message    text COLLATE "C" NOT NULL CHECK (octet_length(message) BETWEEN 1 AND 255),
	hash       bytea NOT NULL CHECK (octet_length(hash) = 32),
	type       text COLLATE "C" NOT NULL,
	size       int NOT NULL CHECK (size >= 0),
	body       bytea CHECK (octet_length(body) = size),
	status     text COLLATE "C" NOT NULL CHECK (status IN ('waiting', 'retried', 'discarded')),
	code       text COLLATE "C" NOT NULL,
	failure    text NOT NULL,
	deliveries int NOT NULL CHECK (deliveries >= 1),
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	changed_by text,
	reason     text,
	PRIMARY KEY (tenant, consumer, message, hash),
	CONSTRAINT inbox_dead_changed CHECK (status = 'waiting' OR changed_by IS NOT NULL)
);
COMMENT ON TABLE pawl.inbox_dead IS 'Messages whose effect is missing: they could not be read, nothing took them, or they were refused.';
COMMENT ON COLUMN pawl.inbox_dead.tenant IS 'Whose message it is.';
COMMENT ON COLUMN pawl.inbox_dead.consumer IS 'Who should have consumed it.';
COMMENT ON COLUMN pawl.inbox_dead.message IS 'The sender''s id of the message.';
COMMENT ON COLUMN pawl.inbox_dead.hash IS 'SHA-256 of its body: two messages with one id are two rows.';
COMMENT ON COLUMN pawl.inbox_dead.type IS 'What the sender calls it; empty when he does not say.';
COMMENT ON COLUMN pawl.inbox_dead.size IS 'The bytes of its body.';
COMMENT ON COLUMN pawl.inbox_dead.body IS 'As it was sent; NULL: it was too large to be kept.';
COMMENT ON COLUMN pawl.inbox_dead.status IS 'waiting: for a person, or for its sender to send it again. retried: done after a person asked for it. discarded: never to be done.';
COMMENT ON COLUMN pawl.inbox_dead.code IS 'The code of its newest failure.';
COMMENT ON COLUMN pawl.inbox_dead.failure IS 'The message of its newest failure.';
COMMENT ON COLUMN pawl.inbox_dead.deliveries IS 'How often it was delivered, as far as is known.';
COMMENT ON COLUMN pawl.inbox_dead.created_at IS 'When it first failed.';
COMMENT ON COLUMN pawl.inbox_dead.updated_at IS 'When it failed last, or a person changed it.';
COMMENT ON COLUMN pawl.inbox_dead.changed_by IS 'Who had it retried, or discarded it.';
COMMENT ON COLUMN pawl.inbox_dead.reason IS 'Why.';

-- Lists by status, and by consumer within one.
CREATE INDEX inbox_dead_list ON pawl.inbox_dead (tenant, status, consumer, created_at, message, hash);
-- What can be forgotten.
CREATE INDEX inbox_dead_over ON pawl.inbox_dead (updated_at) WHERE status <> 'waiting';

CREATE FUNCTION pawl.consume(
	consumer text, message text, hash bytea, keep interval DEFAULT '30 days', tenant text DEFAULT 'default') RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	c      pawl.command;
	inbox  text := 'inbox:' || consume.consumer;
	moment timestamptz := clock_timestamp();
BEGIN
	PERFORM pawl.check_text('tenant', consume.tenant, 64, '22023');
	PERFORM pawl.check_text('consumer', consume.consumer, 249, 'P4000');
	PERFORM pawl.check_text('message id', consume.message, 255, 'P4001');
	PERFORM pawl.check_hash(consume.hash);
	IF coalesce(consume.keep <= interval '0', true) THEN
		RAISE EXCEPTION 'the time to keep the message in mind is missing or already over' USING ERRCODE = '22023';
	END IF;
	LOOP
		INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body,
			created_at, finished_at, expires_at, forget_at)
		VALUES (consume.tenant, inbox, consume.message, consume.hash, 'succeeded', '', '', '00000000-0000-0000-0000-000000000000',
			inbox, 200, '{}', moment, moment, moment + consume.keep, moment + consume.keep)
		ON CONFLICT DO NOTHING;
		IF FOUND THEN RETURN true; END IF;
		SELECT * INTO c FROM pawl.command AS x WHERE x.tenant = consume.tenant AND x.scope = inbox AND x.key = consume.message;
		EXIT WHEN FOUND; -- else it was purged since
	END LOOP;
	IF c.fingerprint <> consume.hash THEN
		RAISE EXCEPTION 'the message id was used with another payload' USING ERRCODE = 'P4050', DETAIL = format('consumer %s, message %s',
			to_json(consume.consumer), to_json(consume.message)), HINT = 'The sender has given two messages one id: a person should look.';
	ELSIF c.phase = 'sql' THEN
		RAISE EXCEPTION 'the message is being worked on' USING ERRCODE = 'P4029', HINT = 'Ask again later.';
	END IF;
	RETURN false;
END $$;
COMMENT ON FUNCTION pawl.consume IS 'True once per consumer and message: do what it asks in this transaction. False: that was done, here or by the engine. Else P4000, P4001, P4003, P4029, P4050.';

CREATE FUNCTION pawl.purge(batch int DEFAULT 1000, tombstone interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
	before   timestamptz := clock_timestamp() - tombstone;
	commands bigint;
BEGIN
	IF coalesce(batch < 1 OR tombstone < interval '0', true) THEN
		RAISE EXCEPTION 'the batch is not a positive number, or the time of the tombstones is negative' USING ERRCODE = '22023';
	END IF;
	DELETE FROM pawl.command WHERE ctid = ANY (ARRAY(
		SELECT x.ctid FROM pawl.command AS x WHERE x.expires_at < before AND x.phase IS NULL ORDER BY x.expires_at LIMIT batch FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS commands = ROW_COUNT;
	RETURN commands;
END $$;
COMMENT ON FUNCTION pawl.purge IS 'Deletes finished commands whose answer expired longer ago than the tombstone lasts: at most batch, the oldest first, none that somebody has locked. Returns how many.';

-- A message that comes in is a command. So the inbox needs no table but one for
-- messages that did not become a command, or were refused.

CREATE TABLE pawl.inbox_dead (
	tenant       text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	consumer     text COLLATE "C" NOT NULL CHECK (octet_length(consumer) BETWEEN 1 AND 249),
	message      text COLLATE "C" NOT NULL CHECK (octet_length(message) BETWEEN 1 AND 255),
	hash         bytea NOT NULL CHECK (octet_length(hash) = 32),
	type         text COLLATE "C" NOT NULL,
	size         int NOT NULL CHECK (size >= 0),
	body         bytea CHECK (octet_length(body) = size),
	status       text COLLATE "C" NOT NULL CHECK (status IN ('waiting', 'retried', 'discarded')),
	code         text COLLATE "C" NOT NULL,
	failure      text NOT NULL,
	deliveries   int NOT NULL CHECK (deliveries >= 1),
	created_at   timestamptz NOT NULL,
	updated_at   timestamptz NOT NULL,
	changed_by   text,
	reason       text,
	workflow     text COLLATE "C",
	business_key text COLLATE "C" CHECK (octet_length(business_key) BETWEEN 1 AND 255),
	instance     uuid,
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
COMMENT ON COLUMN pawl.inbox_dead.status IS
	'waiting: for an operator, or for its sender to send it again. retried: done after an operator asked for it. discarded: never to be done.';
COMMENT ON COLUMN pawl.inbox_dead.code IS 'The code of its newest failure.';
COMMENT ON COLUMN pawl.inbox_dead.failure IS 'The message of its newest failure.';
COMMENT ON COLUMN pawl.inbox_dead.deliveries IS 'How often it was delivered, as far as is known.';
COMMENT ON COLUMN pawl.inbox_dead.created_at IS 'When it first failed.';
COMMENT ON COLUMN pawl.inbox_dead.updated_at IS 'When it failed last, or an operator changed it.';
COMMENT ON COLUMN pawl.inbox_dead.changed_by IS 'Who had it retried, or discarded it.';
COMMENT ON COLUMN pawl.inbox_dead.reason IS 'Why.';
COMMENT ON COLUMN pawl.inbox_dead.workflow IS 'The workflow that takes it; NULL: none does.';
COMMENT ON COLUMN pawl.inbox_dead.business_key IS 'The business key that it names, of an instance that need not be there.';
COMMENT ON COLUMN pawl.inbox_dead.instance IS 'The instance that it names, likewise.';

-- Lists by status, and by consumer within one.
CREATE INDEX inbox_dead_list ON pawl.inbox_dead (tenant, status, consumer, created_at, message, hash);
-- Likewise, by what they are about.
CREATE INDEX inbox_dead_about ON pawl.inbox_dead (tenant, workflow, business_key) WHERE business_key IS NOT NULL;
-- What can be forgotten.
CREATE INDEX inbox_dead_over ON pawl.inbox_dead (updated_at) WHERE status <> 'waiting';

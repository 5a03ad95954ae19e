-- The relay: who delivers to each sink, how far it is, and what could not be
-- delivered. An event that is delivered writes nothing of its own.
--
-- Whoever changes anything about a sink locks its row of outbox_sink first.

CREATE TABLE pawl.outbox_sink (
	name         text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 64),
	tenants      text[],
	token        bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
	revision     bigint NOT NULL DEFAULT 0 CHECK (revision >= 0),
	claimed_by   text COLLATE "C",
	claimed_at   timestamptz,
	locked_until timestamptz,
	paused_at    timestamptz,
	paused_by    text,
	pause_reason text,
	failures     int NOT NULL DEFAULT 0 CHECK (failures >= 0),
	failure      text,
	failed_at    timestamptz,
	delivered    bigint NOT NULL DEFAULT 0,
	failed       bigint NOT NULL DEFAULT 0,
	parked       bigint NOT NULL DEFAULT 0,
	created_at   timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT outbox_sink_lease CHECK ((claimed_by IS NULL) = (locked_until IS NULL) AND (claimed_by IS NULL) = (claimed_at IS NULL)),
	CONSTRAINT outbox_sink_pause CHECK ((paused_at IS NULL) = (paused_by IS NULL))
) WITH (fillfactor = 10);
COMMENT ON TABLE pawl.outbox_sink IS 'The sinks: which node delivers to each, and how it fares.';
COMMENT ON COLUMN pawl.outbox_sink.name IS 'The name of the sink.';
COMMENT ON COLUMN pawl.outbox_sink.tenants IS 'Whose events it gets; NULL: everybody''s.';
COMMENT ON COLUMN pawl.outbox_sink.token IS 'The fencing token: counts the claims. Every write of the relay names it.';
COMMENT ON COLUMN pawl.outbox_sink.revision IS
	'Counts the operators'' changes, so that the relay looks at its dead letters, and at the cursors that were moved.';
COMMENT ON COLUMN pawl.outbox_sink.claimed_by IS 'The node that delivers; NULL: none.';
COMMENT ON COLUMN pawl.outbox_sink.claimed_at IS 'Since when.';
COMMENT ON COLUMN pawl.outbox_sink.locked_until IS 'Until when its lease lasts unless it is renewed. After it any node takes over.';
COMMENT ON COLUMN pawl.outbox_sink.paused_at IS 'Since when nothing is delivered; NULL: it is not paused.';
COMMENT ON COLUMN pawl.outbox_sink.paused_by IS 'Who paused it.';
COMMENT ON COLUMN pawl.outbox_sink.pause_reason IS 'Why.';
COMMENT ON COLUMN pawl.outbox_sink.failures IS 'Attempts in a row that failed for the receiver as a whole; 0: it takes events.';
COMMENT ON COLUMN pawl.outbox_sink.failure IS 'The message of the newest failure.';
COMMENT ON COLUMN pawl.outbox_sink.failed_at IS 'When that was.';
COMMENT ON COLUMN pawl.outbox_sink.delivered IS 'Counts deliveries; repetitions too.';
COMMENT ON COLUMN pawl.outbox_sink.failed IS 'Counts attempts that failed.';
COMMENT ON COLUMN pawl.outbox_sink.parked IS 'Counts events that were given up and wait for an operator, or did.';
COMMENT ON COLUMN pawl.outbox_sink.created_at IS 'When a node first had it.';

CREATE TABLE pawl.outbox_cursor (
	tenant       text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	sink         text COLLATE "C" NOT NULL CHECK (octet_length(sink) BETWEEN 1 AND 64),
	position     bigint NOT NULL CHECK (position >= 0),
	failure      text,
	revision     bigint NOT NULL DEFAULT 0 CHECK (revision >= 0),
	updated_at   timestamptz NOT NULL,
	moved_from   bigint,
	moved_at     timestamptz,
	moved_by     text,
	moved_reason text,
	PRIMARY KEY (tenant, sink),
	CONSTRAINT outbox_cursor_moved CHECK ((moved_at IS NULL) = (moved_from IS NULL) AND (moved_at IS NULL) = (moved_by IS NULL))
) WITH (fillfactor = 50);
COMMENT ON TABLE pawl.outbox_cursor IS 'How far each sink is in each tenant''s log.';
COMMENT ON COLUMN pawl.outbox_cursor.tenant IS 'Whose log.';
COMMENT ON COLUMN pawl.outbox_cursor.sink IS 'The sink.';
COMMENT ON COLUMN pawl.outbox_cursor.position IS 'Every event up to it is delivered, or a row of outbox_dead.';
COMMENT ON COLUMN pawl.outbox_cursor.failure IS 'Why it does not go on; NULL: nothing is in its way.';
COMMENT ON COLUMN pawl.outbox_cursor.revision IS
	'The sink''s revision when an operator moved it last; 0: nobody has. A relay that knows only of an earlier one does not write it.';
COMMENT ON COLUMN pawl.outbox_cursor.updated_at IS 'When it was last written.';
COMMENT ON COLUMN pawl.outbox_cursor.moved_from IS 'Where it was before an operator moved it last.';
COMMENT ON COLUMN pawl.outbox_cursor.moved_at IS 'When that was.';
COMMENT ON COLUMN pawl.outbox_cursor.moved_by IS 'Who moved it.';
COMMENT ON COLUMN pawl.outbox_cursor.moved_reason IS 'Why.';

-- What was moved after a revision. Few rows have a place in it.
CREATE INDEX outbox_cursor_moved ON pawl.outbox_cursor (sink, revision) WHERE revision > 0;

CREATE TABLE pawl.outbox_dead (
	tenant     text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	sink       text COLLATE "C" NOT NULL CHECK (octet_length(sink) BETWEEN 1 AND 64),
	position   bigint NOT NULL CHECK (position >= 1),
	type       text COLLATE "C" NOT NULL,
	ordinal    int NOT NULL CHECK (ordinal >= 0),
	workflow   text COLLATE "C" NOT NULL,
	instance   uuid NOT NULL,
	status     text COLLATE "C" NOT NULL CHECK (status IN ('waiting', 'queued', 'redriven', 'skipped')),
	kind       text COLLATE "C" NOT NULL,
	failure    text NOT NULL,
	attempts   int NOT NULL CHECK (attempts >= 0),
	created_at timestamptz NOT NULL,
	updated_at timestamptz NOT NULL,
	changed_by text,
	reason     text,
	PRIMARY KEY (tenant, sink, position, type),
	CONSTRAINT outbox_dead_skipped CHECK (status <> 'skipped' OR changed_by IS NOT NULL)
);
COMMENT ON TABLE pawl.outbox_dead IS
	'Events that their sink''s cursor has passed without their delivery: dead letters, and those that are retried aside.';
COMMENT ON COLUMN pawl.outbox_dead.tenant IS 'Whose event it is.';
COMMENT ON COLUMN pawl.outbox_dead.sink IS 'The sink that has not got it.';
COMMENT ON COLUMN pawl.outbox_dead.position IS 'Its position; the event itself is in the outbox.';
COMMENT ON COLUMN pawl.outbox_dead.type IS 'Its type.';
COMMENT ON COLUMN pawl.outbox_dead.ordinal IS 'Its number among the events of its position.';
COMMENT ON COLUMN pawl.outbox_dead.workflow IS 'Its workflow.';
COMMENT ON COLUMN pawl.outbox_dead.instance IS 'Its instance.';
COMMENT ON COLUMN pawl.outbox_dead.status IS
	'waiting: for an operator. queued: the relay delivers it, in its turn. redriven: delivered after an operator asked for it. skipped: '
	'never to be delivered.';
COMMENT ON COLUMN pawl.outbox_dead.kind IS
	'What its newest failure was about; held: it was never tried, and is behind another of its instance.';
COMMENT ON COLUMN pawl.outbox_dead.failure IS 'The message of its newest failure.';
COMMENT ON COLUMN pawl.outbox_dead.attempts IS 'Attempts that failed since it was first tried, or redriven.';
COMMENT ON COLUMN pawl.outbox_dead.created_at IS 'When the cursor passed it.';
COMMENT ON COLUMN pawl.outbox_dead.updated_at IS 'When it was last changed.';
COMMENT ON COLUMN pawl.outbox_dead.changed_by IS 'Who asked for it to be delivered again, or skipped it.';
COMMENT ON COLUMN pawl.outbox_dead.reason IS 'Why.';

-- Lists by status, what is queued of an instance, and whether one waits before it.
CREATE INDEX outbox_dead_list ON pawl.outbox_dead (sink, status, tenant, instance, position, ordinal);

-- The tables of the commit pipeline. Every statement that writes them names one
-- tenant by equality. Lock order, always: instances by id, commands by key, log
-- heads by tenant.
--
-- A function runs with the rights of its caller. Where somebody else may make
-- functions in a schema that the caller looks into, such as "public" before
-- PostgreSQL 15, he could give a name like format a meaning of his own, and so run
-- code as whoever calls Pawl's (CVE-2018-1058 is of this kind). So every function
-- has a search path of its own.
--
-- JSON is kept as json, not jsonb: the audit chain hashes the very bytes that
-- were decided, and a replay returns them.
--
-- Columns of a fixed width come first, so that no bytes are lost for their alignment; in
-- the rows that change, after what stays.

-- What stays for its life comes first, then what every transition changes, then what
-- often stays. An update that finds room in the page writes into the write-ahead log
-- only what is between the first byte that changes and the last one, so data that stays
-- as it is, or changes at its beginning, is not written there a second time.
--
-- The primary key has one entry for each version of a row that is kept, and a new entry
-- must be unlike all that are equal. So the bucket moves on with the version: equal are at
-- most 4, and the newest come last. That there is one row for each id follows from
-- two keys: two that are new are in one bucket, and one that has gone on has an audit row
-- with the version 1.
CREATE TABLE pawl.instance (
	id           uuid NOT NULL,
	created_at   timestamptz NOT NULL,
	definition   int NOT NULL CHECK (definition >= 1),
	tenant       text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	workflow     text COLLATE "C" NOT NULL,
	business_key text COLLATE "C" CHECK (octet_length(business_key) BETWEEN 1 AND 255),
	version      bigint NOT NULL CHECK (version >= 1),
	updated_at   timestamptz NOT NULL,
	bucket       int NOT NULL DEFAULT 0 CHECK (bucket BETWEEN 0 AND version / 4),
	open         boolean NOT NULL,
	paused       boolean NOT NULL DEFAULT false,
	state        text COLLATE "C" NOT NULL,
	chain        bytea NOT NULL CHECK (octet_length(chain) = 32),
	links        json,
	actors       json,
	attributes   jsonb,
	data         json NOT NULL,
	PRIMARY KEY (tenant, id, bucket),
	-- The engine reads no others, and a SQL caller who stored some would keep
	-- everybody from listing instances.
	CHECK (jsonb_typeof(attributes) = 'object' AND NOT attributes @? 'strict $.* ? (@.type() != "string")')
) WITH (fillfactor = 85);
COMMENT ON TABLE pawl.instance IS 'One case, one order: where it is now.';
COMMENT ON COLUMN pawl.instance.tenant IS 'Whose instance it is; the first part of every key.';
COMMENT ON COLUMN pawl.instance.id IS 'UUIDv8 of tenant, workflow and business key where there is a business key, else UUIDv7.';
COMMENT ON COLUMN pawl.instance.workflow IS 'The name of its workflow.';
COMMENT ON COLUMN pawl.instance.definition IS 'The version of the definition that it is on.';
COMMENT ON COLUMN pawl.instance.business_key IS 'The caller''s own number, which the id is derived from.';
COMMENT ON COLUMN pawl.instance.state IS 'The state it is in.';
COMMENT ON COLUMN pawl.instance.version IS 'Counts its transitions; guards every update.';
COMMENT ON COLUMN pawl.instance.bucket IS
	'0 for a new instance; with a transition the version divided by 4. While an old snapshot keeps all versions of the row, a scan of the '
	'primary key finds the newest first, and a new entry is compared to few.';
COMMENT ON COLUMN pawl.instance.data IS 'The workflow''s data after the last transition.';
COMMENT ON COLUMN pawl.instance.attributes IS 'The declared attributes by which it can be found.';
COMMENT ON COLUMN pawl.instance.actors IS 'Who did the transitions whose actors others exclude: {"transition": ["actor"]}.';
COMMENT ON COLUMN pawl.instance.open IS 'False in a final state.';
COMMENT ON COLUMN pawl.instance.chain IS 'The hash of its last audit row.';
COMMENT ON COLUMN pawl.instance.created_at IS 'The time of its first transition.';
COMMENT ON COLUMN pawl.instance.updated_at IS 'The time of its last transition.';
COMMENT ON COLUMN pawl.instance.paused IS 'Nothing new is begun on it until it is resumed.';
COMMENT ON COLUMN pawl.instance.links IS 'What ties it to others: the command in flight, effects that a later failure undoes, the parent.';

-- Lists and counts: the first five columns are the kinds of instances that there are,
-- few beside the table, and within each they are in the order of their last
-- transition. So what moves is written at the end of its kind, where others write
-- too. Why there is no other index is told in docs/decisions/0014. As long as it knows
-- nothing of the table, the planner may look for an instance whose id it has in this
-- index, where it would read all of a tenant's entries for each. No column of the
-- table is NULL; the condition says that the index is only for those who ask for a
-- workflow.
CREATE INDEX instance_list ON pawl.instance (tenant, workflow, definition, state, open, updated_at, id) WHERE workflow IS NOT NULL;
-- How many there are of each kind, where that is more than is counted: of a tenant,
-- and of all. The columns depend on each other, so theirs by themselves would mislead.
CREATE STATISTICS pawl.instance_kinds (mcv) ON tenant, workflow, definition, state, open FROM pawl.instance;
CREATE STATISTICS pawl.instance_kinds_all (mcv) ON workflow, definition, state, open FROM pawl.instance;
-- Lists by declared attribute. Workflows that declare none pay nothing.
CREATE INDEX instance_attributes ON pawl.instance USING gin (attributes jsonb_path_ops) WHERE attributes IS NOT NULL;

-- What is paused. Only these instances have an entry.
CREATE INDEX instance_paused ON pawl.instance (tenant, workflow, id) WHERE paused;

-- The columns from phase on are of commands in flight: work outside of the
-- database, scheduled commands, timers, and what SQL callers hold. They are NULL in
-- the row of a command that is done at once, and cost it nothing; and what is
-- finished leaves the partial indexes, so that each stays as small as the work that
-- it serves.
--
-- A command that a SQL caller holds has the phase "sql". It is due for nobody and
-- its lease is a column of its own, so that it is in none of the indexes in which
-- the engine's workers look for work.
--
-- What a transition is answered at once has the state, and the rest of it stands in the
-- row anyway: it is put together when it is asked for again. Any other answer is kept
-- whole. docs/decisions/0017-what-a-transition-writes.md tells why.
--
-- Until expires_at an answer is replayed. Then it is dropped and the row stays as a
-- tombstone, with the status "expired"; its expires_at is when that may be forgotten,
-- NULL for never. So one column and one index serve both ends.
--
-- Every answer that expires leaves a dead row, and so does every tombstone that is
-- forgotten. Those are to be a twentieth of the table at most, not a fifth.
CREATE TABLE pawl.command (
	instance     uuid NOT NULL,
	created_at   timestamptz NOT NULL,
	version      bigint CHECK (version >= 1),
	finished_at  timestamptz,
	expires_at   timestamptz,
	code         smallint CHECK (code BETWEEN 200 AND 599),
	tenant       text COLLATE "C" NOT NULL,
	scope        text COLLATE "C" NOT NULL CHECK (octet_length(scope) BETWEEN 1 AND 255),
	key          text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
	fingerprint  bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
	workflow     text COLLATE "C" NOT NULL,
	transition   text COLLATE "C" NOT NULL,
	actor        text NOT NULL,
	request      json,
	status       text COLLATE "C" NOT NULL
		CHECK (status IN ('pending', 'processing', 'succeeded', 'failed_retryable', 'failed_final', 'expired')),
	state        text COLLATE "C",
	body         text,
	phase        text COLLATE "C" CHECK (phase IN ('scheduled', 'working', 'undoing', 'sql')),
	attempt      int CHECK (attempt >= 0),
	failures     int CHECK (failures >= 0),
	revision     int CHECK (revision >= 0),
	claimed_by   text COLLATE "C",
	claimed_at   timestamptz,
	locked_until timestamptz,
	run_at       timestamptz,
	progress     json,
	failure      text,
	stuck        text COLLATE "C",
	cancelled_by text,
	unsure       boolean,
	updated_at   timestamptz,
	held_until   timestamptz,
	given_up_at  timestamptz,
	forget_at    timestamptz,
	waits_since  timestamptz,
	paused       text COLLATE "C",
	definition   int CHECK (definition >= 1),
	PRIMARY KEY (tenant, scope, key),
	CHECK ((status IN ('succeeded', 'failed_final')) = (code IS NOT NULL)),
	CONSTRAINT command_answer CHECK ((code IS NULL) = (coalesce(state, body) IS NULL) AND (state IS NULL OR version IS NOT NULL)),
	CHECK (status IN ('pending', 'processing', 'failed_retryable') OR finished_at IS NOT NULL),
	CONSTRAINT command_phase CHECK ((status IN ('pending', 'processing', 'failed_retryable')) = (phase IS NOT NULL)),
	CONSTRAINT command_in_flight CHECK (phase IS NULL
		OR (attempt IS NOT NULL AND failures IS NOT NULL AND revision IS NOT NULL AND request IS NOT NULL AND updated_at IS NOT NULL)),
	CONSTRAINT command_lease CHECK ((status = 'processing' AND phase <> 'sql') = (locked_until IS NOT NULL)
		AND (status <> 'processing' OR (claimed_by IS NOT NULL AND claimed_at IS NOT NULL))),
	CONSTRAINT command_due CHECK ((status IN ('pending', 'failed_retryable') AND stuck IS NULL AND phase <> 'sql') = (run_at IS NOT NULL)),
	CONSTRAINT command_stuck CHECK (stuck IS NULL OR status = 'failed_retryable'),
	CONSTRAINT command_paused CHECK (paused IS NULL OR (phase = 'scheduled' AND run_at IS NOT NULL)),
	CONSTRAINT command_held CHECK ((status = 'processing' AND phase = 'sql') = (held_until IS NOT NULL)),
	CONSTRAINT command_given_up CHECK ((status = 'failed_retryable' AND phase = 'sql') = (given_up_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE pawl.command IS
	'One intent, named by tenant, scope and key: what was asked, and the answer. The primary key decides who wins.';
COMMENT ON COLUMN pawl.command.tenant IS 'Whose command it is.';
COMMENT ON COLUMN pawl.command.scope IS 'Within what the key is unique; by default the workflow and the instance.';
COMMENT ON COLUMN pawl.command.key IS 'The caller''s idempotency key.';
COMMENT ON COLUMN pawl.command.fingerprint IS 'SHA-256 of the canonical request; another request with this key is refused.';
COMMENT ON COLUMN pawl.command.status IS 'Where it stands.';
COMMENT ON COLUMN pawl.command.workflow IS 'The workflow that it is about.';
COMMENT ON COLUMN pawl.command.transition IS 'The transition that it asks for.';
COMMENT ON COLUMN pawl.command.instance IS 'The instance that it is about.';
COMMENT ON COLUMN pawl.command.version IS
	'The version of the instance that it made; with the instance it finds the audit row and so the position. NULL when it changed nothing.';
COMMENT ON COLUMN pawl.command.actor IS 'Who asked.';
COMMENT ON COLUMN pawl.command.code IS 'The HTTP status of the answer.';
COMMENT ON COLUMN pawl.command.state IS 'The state after the transition, where the answer says nothing but that, the result and what other columns say. Then the function answer puts it together.';
COMMENT ON COLUMN pawl.command.body IS 'The answer, byte for byte, but for its last member, the position; where there is a state, only the transition''s result, NULL for none.';
COMMENT ON COLUMN pawl.command.created_at IS 'When it was first asked.';
COMMENT ON COLUMN pawl.command.finished_at IS 'When it was answered for good.';
COMMENT ON COLUMN pawl.command.expires_at IS
	'Until when the answer is replayed; after it the key is refused and never runs again. Of a tombstone: when it may be forgotten; NULL '
	'for never.';
COMMENT ON COLUMN pawl.command.phase IS
	'What a command in flight waits for: its time, the outcome of its activity, that of an undo, or a SQL caller. NULL when it is finished.';
COMMENT ON COLUMN pawl.command.attempt IS 'The fencing token: counts its claims. Only the newest may complete it.';
COMMENT ON COLUMN pawl.command.failures IS 'Attempts that failed or were lost; what the retry policy counts.';
COMMENT ON COLUMN pawl.command.revision IS 'Counts the changes of the row, for those who watch it.';
COMMENT ON COLUMN pawl.command.claimed_by IS 'The node that works on it, or did last.';
COMMENT ON COLUMN pawl.command.claimed_at IS 'Since when.';
COMMENT ON COLUMN pawl.command.locked_until IS 'Until when the lease lasts without a heartbeat. After it any node takes over.';
COMMENT ON COLUMN pawl.command.run_at IS 'When it is due: to be decided, or for its next attempt.';
COMMENT ON COLUMN pawl.command.request IS 'What was asked, while it is in flight; afterwards the audit row has it.';
COMMENT ON COLUMN pawl.command.progress IS 'The newest report of the activity.';
COMMENT ON COLUMN pawl.command.failure IS 'The message of the newest failure.';
COMMENT ON COLUMN pawl.command.stuck IS 'Why it waits for an operator; NULL when it does not.';
COMMENT ON COLUMN pawl.command.cancelled_by IS 'Who asked it to stop.';
COMMENT ON COLUMN pawl.command.unsure IS 'Whether some attempt may have had its effect: its worker was lost in the middle of it, or it failed and did not say '
	'that nothing has happened. false: all that have failed have said so. NULL: where failures were counted, some may have had it.';
COMMENT ON COLUMN pawl.command.updated_at IS 'When it changed last, while in flight.';
COMMENT ON COLUMN pawl.command.held_until IS
	'Until when the SQL caller that claimed it has it to himself. After it the next claim takes over.';
COMMENT ON COLUMN pawl.command.given_up_at IS
	'When a command that its SQL caller has given back fails for good, unless it is claimed before.';
COMMENT ON COLUMN pawl.command.waits_since IS
	'Since when it has been due, where it was claimed and given back without an attempt; run_at moves on each time.';
COMMENT ON COLUMN pawl.command.forget_at IS
	'Until when the tombstone stays, where the caller asked for another time than the workflow''s; infinity for ever.';
COMMENT ON COLUMN pawl.command.definition IS
	'The version of the definition that its instance is on, since it is in flight: nodes that do not know it leave it alone. NULL: any node may find out.';
COMMENT ON COLUMN pawl.command.paused IS 'Whose pause it waits for the end of, since it became due: instance:<id> or workflow:<name>. NULL: none is known to hold it.';

-- What is to be decided at a time, over all tenants. What became due in a pause is set
-- aside, so that no look reads it until the pause ends.
CREATE INDEX command_due ON pawl.command (run_at) WHERE phase = 'scheduled' AND run_at IS NOT NULL AND paused IS NULL;
-- The same by tenant, so that each has its turn. Its condition is written otherwise, so that no query can choose between the two.
-- Any number may be due at one moment, such as at midnight: by the instance a list of them goes on in the midst of those.
CREATE INDEX command_due_turn ON pawl.command (tenant, run_at, instance)
	WHERE phase BETWEEN 'scheduled' AND 'scheduled' AND run_at IS NOT NULL AND paused IS NULL AND tenant >= '';
-- What is set aside, by what it waits for.
CREATE INDEX command_paused ON pawl.command (paused, tenant, run_at) WHERE paused IS NOT NULL;
-- Work that waits, by activity: what one of them cannot take is not read for another.
-- What a free worker takes at its accept is never in it.
CREATE INDEX command_work ON pawl.command (workflow, transition, run_at) WHERE run_at IS NOT NULL AND phase <> 'scheduled';
-- The same by tenant, so that each has its turn; likewise with a condition that no other query has.
CREATE INDEX command_turn ON pawl.command (tenant, workflow, transition, run_at) WHERE run_at IS NOT NULL AND phase || '' <> 'scheduled';
-- Whose lease has run out.
CREATE INDEX command_leased ON pawl.command (locked_until) WHERE locked_until IS NOT NULL;
-- Whatever waits in a scope to be decided: the timers of a state that is left. Likewise.
CREATE INDEX command_scheduled ON pawl.command (tenant, scope) WHERE phase || '' = 'scheduled';
-- What callers have asked for later, without the engine's timers. Many may be due
-- at one time; so the key is a part of the place.
CREATE INDEX command_planned ON pawl.command (run_at, tenant, scope, key) WHERE phase = 'scheduled' AND NOT starts_with(scope, 'pawl:');
-- Likewise, of an instance: what is shown with it.
CREATE INDEX command_planned_on ON pawl.command (tenant, instance, run_at) WHERE phase = 'scheduled' AND NOT starts_with(scope, 'pawl:');
-- What waits for an operator.
CREATE INDEX command_stuck ON pawl.command (tenant, updated_at, scope, key) WHERE stuck IS NOT NULL;
-- Likewise, of an instance: what is shown with it.
CREATE INDEX command_stuck_on ON pawl.command (tenant, instance) WHERE stuck IS NOT NULL;
-- What SQL callers hold, for operators: no claim looks here.
CREATE INDEX command_held ON pawl.command (held_until) WHERE held_until IS NOT NULL;
-- What was given back, and nobody has claimed since.
CREATE INDEX command_given_back ON pawl.command (given_up_at) WHERE given_up_at IS NOT NULL;
-- What can be purged.
CREATE INDEX command_expires ON pawl.command (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE pawl.log (
	tenant text COLLATE "C" PRIMARY KEY CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	head   bigint NOT NULL DEFAULT 0 CHECK (head >= 0)
) WITH (fillfactor = 10);
COMMENT ON TABLE pawl.log IS 'The head of each tenant''s log. Its row lock is taken last and makes positions gapless and commit-ordered.';
COMMENT ON COLUMN pawl.log.tenant IS 'Whose log it is.';
COMMENT ON COLUMN pawl.log.head IS 'The position of the newest transition; 0 for an empty log.';

-- Moves the head of a log, and returns where it stood before. It is the one place that
-- does so.
--
-- Every move leaves a version of the row. While an old snapshot is open none of them can
-- be removed, so a look from the oldest on would read them all. Equal keys of an index are
-- in the order of their rows' places, and new pages come last: the newest version is where
-- a scan that goes back begins. It reads the versions of that one page, at most some two
-- hundred. An equality, or no ORDER BY, would let the planner go forward.
--
-- Each statement in here sees what was committed before it. So the update finds the newest
-- version, unless somebody moves it at this very moment: then the update waits for him, and
-- some versions of PostgreSQL change the row while others find that its place has changed.
-- What they have found is locked then, or will be by the second statement, and stays.
CREATE FUNCTION pawl.advance(tenant text, steps bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE base bigint;
BEGIN
	LOOP
		UPDATE pawl.log AS l SET head = l.head + steps WHERE l.ctid = (SELECT x.ctid FROM pawl.log AS x
			WHERE x.tenant >= advance.tenant AND x.tenant <= advance.tenant ORDER BY x.tenant DESC LIMIT 1)
		RETURNING l.head - steps INTO base;
		IF FOUND THEN RETURN base; END IF;
		PERFORM FROM pawl.log AS x WHERE x.tenant >= advance.tenant AND x.tenant <= advance.tenant
			ORDER BY x.tenant DESC LIMIT 1 FOR NO KEY UPDATE;
		IF NOT FOUND THEN -- the log of a new tenant
			INSERT INTO pawl.log AS l (tenant, head) VALUES (tenant, steps) ON CONFLICT DO NOTHING;
			IF FOUND THEN RETURN 0; END IF;
		END IF;
	END LOOP;
END $$;
COMMENT ON FUNCTION pawl.advance(text, bigint) IS 'Internal: moves the head of a tenant''s log by a number of transitions, and returns where it stood before.';

-- Tells the head of a log; NULL: there is none. It goes back from the newest version, as the
-- function above does. The settings hold for whoever asks, also with a plan that a session
-- made while the table was small: to read all of it would be to read all versions.
CREATE FUNCTION pawl.head(tenant text) RETURNS bigint LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
	SET enable_seqscan = off SET enable_bitmapscan = off AS $$
#variable_conflict use_variable
BEGIN
	RETURN (SELECT x.head FROM pawl.log AS x WHERE x.tenant >= head.tenant AND x.tenant <= head.tenant ORDER BY x.tenant DESC LIMIT 1);
END $$;
COMMENT ON FUNCTION pawl.head(text) IS 'The position of a tenant''s newest transition; NULL: there is none.';

CREATE TABLE pawl.audit (
	version        bigint NOT NULL CHECK (version >= 1),
	position       bigint NOT NULL CHECK (position <> 0),
	at             timestamptz NOT NULL,
	instance       uuid NOT NULL,
	tenant         text COLLATE "C" NOT NULL,
	workflow       text COLLATE "C" NOT NULL,
	transition     text COLLATE "C" NOT NULL,
	from_state     text COLLATE "C",
	to_state       text COLLATE "C" NOT NULL,
	actor          text NOT NULL,
	proof          text CHECK (octet_length(proof) BETWEEN 1 AND 512),
	reason         text,
	payload        json,
	data           json,
	scope          text COLLATE "C",
	key            text COLLATE "C" NOT NULL,
	cause          text COLLATE "C" CHECK (cause = 'operator' OR cause ~ '^import [0-9T:.-]{19,26}Z$'),
	payload_digest bytea CHECK (octet_length(payload_digest) = 32),
	data_digest    bytea CHECK (octet_length(data_digest) = 32),
	hash           bytea NOT NULL CHECK (octet_length(hash) = 32),
	rest_digest    bytea CHECK (octet_length(rest_digest) = 32),
	events_digest  bytea CHECK (octet_length(events_digest) = 32),
	-- A replay asks for the position alone, and need not read the row for it.
	PRIMARY KEY (tenant, instance, version) INCLUDE (position),
	CHECK ((version = 1) = (from_state IS NULL)),
	CHECK ((payload IS NULL) = (payload_digest IS NOT NULL)),
	CHECK ((data IS NULL) = (data_digest IS NOT NULL))
);
COMMENT ON TABLE pawl.audit IS
	'Every transition, for good: who, what, from, to, why, with what payload, and the data after it. Append-only.';
COMMENT ON COLUMN pawl.audit.tenant IS 'Whose instance it is.';
COMMENT ON COLUMN pawl.audit.instance IS 'The instance.';
COMMENT ON COLUMN pawl.audit.version IS 'The version that the transition made.';
COMMENT ON COLUMN pawl.audit.position IS
	'Its place in the tenant''s log: gapless from 1, in commit order. Negative only inside of the transaction that writes it, until that '
	'commits.';
COMMENT ON COLUMN pawl.audit.workflow IS 'The workflow.';
COMMENT ON COLUMN pawl.audit.transition IS 'The transition.';
COMMENT ON COLUMN pawl.audit.from_state IS 'The state before; NULL for a creation.';
COMMENT ON COLUMN pawl.audit.to_state IS 'The state after.';
COMMENT ON COLUMN pawl.audit.actor IS 'Who did it.';
COMMENT ON COLUMN pawl.audit.proof IS
	'How it was known who that is: the kind of the credential and who vouches for it, such as "jwt https://idp.example"; and, after " by ", '
	'who acted as him. NULL where that was not asked. Never the credential.';
COMMENT ON COLUMN pawl.audit.reason IS 'Why, where the workflow says so.';
COMMENT ON COLUMN pawl.audit.payload IS 'The canonical payload; NULL when it was redacted.';
COMMENT ON COLUMN pawl.audit.data IS 'The data after the transition; NULL when it was redacted.';
COMMENT ON COLUMN pawl.audit.scope IS 'The scope of the command that did it; NULL for the default one: the workflow and the instance, of a creation the workflow and the transition. The function scope_of tells it.';
COMMENT ON COLUMN pawl.audit.key IS 'The key of the command that did it.';
COMMENT ON COLUMN pawl.audit.cause IS 'What it comes from, where the scope does not tell: operator, or import and when it had happened; else NULL.';
COMMENT ON COLUMN pawl.audit.at IS 'The time of the decision.';
COMMENT ON COLUMN pawl.audit.payload_digest IS 'SHA-256 of a redacted payload, so that the chain still verifies.';
COMMENT ON COLUMN pawl.audit.data_digest IS 'SHA-256 of redacted data.';
COMMENT ON COLUMN pawl.audit.hash IS
	'SHA-256 over this row, how the instance stood before and after it, and the hash of the instance''s previous row.';
COMMENT ON COLUMN pawl.audit.rest_digest IS
	'SHA-256 of the instance''s attributes, actors and effects after the transition; NULL when they are as the row before left them.';
COMMENT ON COLUMN pawl.audit.events_digest IS 'SHA-256 of the events that the transition emitted beside its own; NULL for none.';

-- By week, so that old events go as a whole. A position is not part of the
-- partition's key, so the primary key of (tenant, position, type) is each
-- partition's own. All events of a transition have its time, and so are in one.
--
-- What the audit row of the transition has (who, why, from which state, by which
-- key, and the data after it) is not written a second time: whoever reads the log
-- finds that row by its primary key. See docs/decisions/0013-events.md.
CREATE TABLE pawl.outbox (
	position     bigint NOT NULL CHECK (position <> 0),
	version      bigint NOT NULL,
	at           timestamptz NOT NULL,
	instance     uuid NOT NULL,
	ordinal      int NOT NULL CHECK (ordinal >= 0),
	tenant       text COLLATE "C" NOT NULL,
	type         text COLLATE "C" NOT NULL CHECK (octet_length(type) BETWEEN 1 AND 255),
	workflow     text COLLATE "C" NOT NULL,
	transition   text COLLATE "C" NOT NULL,
	state        text COLLATE "C" NOT NULL,
	business_key text COLLATE "C",
	attributes   jsonb,
	payload      json,
	trace        text COLLATE "C" CHECK (octet_length(trace) BETWEEN 55 AND 568),
	-- What a reader cannot read would keep everybody from the log.
	CHECK (jsonb_typeof(attributes) = 'object' AND NOT attributes @? 'strict $.* ? (@.type() != "string")'),
	CHECK (ordinal > 0 OR payload IS NULL)
) PARTITION BY RANGE (at);
COMMENT ON TABLE pawl.outbox IS
	'The events of the log, at least one per position, by week. Append-only: delivery writes nothing here. The primary key of a partition '
	'allows one event of a type per transition.';
COMMENT ON COLUMN pawl.outbox.tenant IS 'Whose event it is.';
COMMENT ON COLUMN pawl.outbox.position IS 'The position of its transition, the cursor of every reader.';
COMMENT ON COLUMN pawl.outbox.type IS 'The type of the event.';
COMMENT ON COLUMN pawl.outbox.ordinal IS 'Counts the events of one transition from 0.';
COMMENT ON COLUMN pawl.outbox.workflow IS 'The workflow.';
COMMENT ON COLUMN pawl.outbox.instance IS 'The instance.';
COMMENT ON COLUMN pawl.outbox.version IS 'The version that the transition made.';
COMMENT ON COLUMN pawl.outbox.transition IS 'The transition.';
COMMENT ON COLUMN pawl.outbox.state IS 'The state after it.';
COMMENT ON COLUMN pawl.outbox.at IS 'The time of the decision.';
COMMENT ON COLUMN pawl.outbox.business_key IS 'The business key of the instance; NULL where it has none.';
COMMENT ON COLUMN pawl.outbox.attributes IS
	'The declared attributes after it, for readers who want only some events; NULL where there are none.';
COMMENT ON COLUMN pawl.outbox.payload IS
	'What the action emitted; NULL when it was erased. The payload of the transition''s own event, with the ordinal 0, is the data in the '
	'audit row.';
COMMENT ON COLUMN pawl.outbox.trace IS
	'Where in a trace its transition was decided: a traceparent (W3C Trace Context) and, after a blank, a tracestate. NULL where none is '
	'sampled. In no hash: it says how somebody looked on, not what has happened.';

CREATE TABLE pawl.definition (
	workflow   text COLLATE "C" NOT NULL,
	version    int NOT NULL,
	hash       text COLLATE "C" NOT NULL,
	spec       json NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	members    json NOT NULL DEFAULT '{}',
	builds     text[] COLLATE "C" NOT NULL DEFAULT '{}',
	PRIMARY KEY (workflow, version)
);
COMMENT ON TABLE pawl.definition IS
	'The definitions that have run here. A changed definition under an unchanged version is refused at start-up.';
COMMENT ON COLUMN pawl.definition.workflow IS 'The name of the workflow.';
COMMENT ON COLUMN pawl.definition.version IS 'The version of the definition.';
COMMENT ON COLUMN pawl.definition.hash IS 'SHA-256 of what the definition says.';
COMMENT ON COLUMN pawl.definition.spec IS 'What the definition says.';
COMMENT ON COLUMN pawl.definition.created_at IS 'When it was first seen.';
COMMENT ON COLUMN pawl.definition.members IS
	'What the data of its instances may consist of: the kind of each member, by path, and the attributes. A build that cannot read it is refused at start-up.';
COMMENT ON COLUMN pawl.definition.builds IS 'The builds that were accepted: of each the SHA-256 of its members.';

CREATE TABLE pawl.begins (
	workflow text COLLATE "C" PRIMARY KEY CHECK (octet_length(workflow) BETWEEN 1 AND 64),
	version  int NOT NULL CHECK (version >= 1),
	actor    text NOT NULL,
	at       timestamptz NOT NULL
);
COMMENT ON TABLE pawl.begins IS
	'Which version new instances of a workflow begin with, at the most, whatever newer ones nodes know. Without a row: the newest.';
COMMENT ON COLUMN pawl.begins.workflow IS 'The workflow.';
COMMENT ON COLUMN pawl.begins.version IS 'The version.';
COMMENT ON COLUMN pawl.begins.actor IS 'Who said so.';
COMMENT ON COLUMN pawl.begins.at IS 'When.';

CREATE TABLE pawl.node (
	name     text COLLATE "C" PRIMARY KEY,
	versions text[] COLLATE "C" NOT NULL,
	build    text NOT NULL,
	begun_at timestamptz NOT NULL,
	seen_at  timestamptz NOT NULL
);
COMMENT ON TABLE pawl.node IS 'The nodes that serve, and what they know: for operators, for a node that is asked what only a newer version can do, and for migrations of instances, which wait for nodes that lack the version.';
COMMENT ON COLUMN pawl.node.name IS 'Who holds leases under this name.';
COMMENT ON COLUMN pawl.node.versions IS 'The workflows that it knows, each with a version behind a space.';
COMMENT ON COLUMN pawl.node.build IS 'Which program it is, and with which version of Pawl.';
COMMENT ON COLUMN pawl.node.begun_at IS 'Since when it serves, by the clock of the database.';
COMMENT ON COLUMN pawl.node.seen_at IS 'When it last said that it does.';

CREATE TABLE pawl.instance_migration (
	id           bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
	token        bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
	created_at   timestamptz NOT NULL,
	next_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
	claimed_at   timestamptz,
	locked_until timestamptz,
	ended_at     timestamptz,
	stopped_at   timestamptz,
	expected     bigint NOT NULL CHECK (expected >= 0),
	migrated     bigint NOT NULL DEFAULT 0,
	skipped      bigint NOT NULL DEFAULT 0,
	rejected     bigint NOT NULL DEFAULT 0,
	waiting      bigint NOT NULL DEFAULT 0,
	from_version int NOT NULL CHECK (from_version >= 1),
	to_version   int NOT NULL CHECK (to_version >= 1 AND to_version <> from_version),
	per_second   int NOT NULL CHECK (per_second BETWEEN 1 AND 100000),
	workflow     text COLLATE "C" NOT NULL CHECK (octet_length(workflow) BETWEEN 1 AND 64),
	claimed_by   text COLLATE "C",
	actor        text NOT NULL,
	proof        text CHECK (octet_length(proof) BETWEEN 1 AND 512),
	reason       text,
	key          text COLLATE "C" CHECK (octet_length(key) BETWEEN 1 AND 255),
	stopped_by   text,
	stop_reason  text,
	held         text,
	place        json NOT NULL DEFAULT '{}',
	page         json,
	refusals     json NOT NULL DEFAULT '[]',
	CONSTRAINT instance_migration_lease CHECK ((claimed_by IS NULL) = (locked_until IS NULL) AND (claimed_by IS NULL) = (claimed_at IS NULL)),
	CHECK (ended_at IS NULL OR (claimed_by IS NULL AND page IS NULL)),
	CHECK ((stopped_by IS NULL) = (stopped_at IS NULL) AND (stop_reason IS NULL OR stopped_by IS NOT NULL))
);
COMMENT ON TABLE pawl.instance_migration IS
	'Migrations of all instances of a version that were under way, to another one. What has become of each instance is the answer of a '
	'command in the scope pawl:migration:<id>, whose key is the instance.';
COMMENT ON SEQUENCE pawl.instance_migration_id_seq IS 'Counts them.';
COMMENT ON COLUMN pawl.instance_migration.id IS 'Counts them.';
COMMENT ON COLUMN pawl.instance_migration.workflow IS 'The workflow.';
COMMENT ON COLUMN pawl.instance_migration.from_version IS 'The version that the instances are on.';
COMMENT ON COLUMN pawl.instance_migration.to_version IS 'The version that they go to.';
COMMENT ON COLUMN pawl.instance_migration.per_second IS 'How many instances are taken in a second, at most.';
COMMENT ON COLUMN pawl.instance_migration.actor IS 'Who asked for it; the actor of every transition of it.';
COMMENT ON COLUMN pawl.instance_migration.proof IS 'How it was known who that is; as in audit.';
COMMENT ON COLUMN pawl.instance_migration.reason IS 'Why; the reason of every transition of it.';
COMMENT ON COLUMN pawl.instance_migration.created_at IS 'When it was asked for. Instances that have begun later are left alone.';
COMMENT ON COLUMN pawl.instance_migration.expected IS 'How many instances there were, about.';
COMMENT ON COLUMN pawl.instance_migration.migrated IS 'How many have gone to the version.';
COMMENT ON COLUMN pawl.instance_migration.skipped IS 'How many had gone there before, or had ended.';
COMMENT ON COLUMN pawl.instance_migration.rejected IS 'How many the plan does not take, for good.';
COMMENT ON COLUMN pawl.instance_migration.waiting IS 'How many could not be taken when they were all looked at last, and are tried again.';
COMMENT ON COLUMN pawl.instance_migration.refusals IS 'Why some are rejected: of each reason how many, and one of them.';
COMMENT ON COLUMN pawl.instance_migration.held IS 'Why it does not go on now, or why some wait.';
COMMENT ON COLUMN pawl.instance_migration.place IS 'How far the look at all instances is.';
COMMENT ON COLUMN pawl.instance_migration.page IS 'The instances that are being taken and are not counted yet. Whoever takes over asks for the same once more.';
COMMENT ON COLUMN pawl.instance_migration.token IS 'The fencing token: counts the claims. Whatever is written names it.';
COMMENT ON COLUMN pawl.instance_migration.claimed_by IS 'The node that does it; NULL: none.';
COMMENT ON COLUMN pawl.instance_migration.claimed_at IS 'Since when.';
COMMENT ON COLUMN pawl.instance_migration.locked_until IS 'Until when its lease lasts unless it is renewed. After it any node takes over.';
COMMENT ON COLUMN pawl.instance_migration.next_at IS 'When it goes on, where nobody does it.';
COMMENT ON COLUMN pawl.instance_migration.key IS 'The caller''s idempotency key, where he gave one: asked for once more it is the same migration.';
COMMENT ON COLUMN pawl.instance_migration.stopped_at IS 'When somebody asked for its end.';
COMMENT ON COLUMN pawl.instance_migration.stopped_by IS 'Who did.';
COMMENT ON COLUMN pawl.instance_migration.stop_reason IS 'Why.';
COMMENT ON COLUMN pawl.instance_migration.ended_at IS 'When it ended.';
-- One at a time of a workflow.
CREATE UNIQUE INDEX instance_migration_open ON pawl.instance_migration (workflow) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX instance_migration_key ON pawl.instance_migration (key) WHERE key IS NOT NULL;

CREATE TABLE pawl.paused (
	tenant   text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	workflow text COLLATE "C" NOT NULL,
	actor    text NOT NULL,
	reason   text,
	at       timestamptz NOT NULL,
	PRIMARY KEY (tenant, workflow)
);
COMMENT ON TABLE pawl.paused IS 'The workflows of which nothing new is begun.';
COMMENT ON COLUMN pawl.paused.tenant IS 'Whose instances.';
COMMENT ON COLUMN pawl.paused.workflow IS 'The workflow.';
COMMENT ON COLUMN pawl.paused.actor IS 'Who paused it.';
COMMENT ON COLUMN pawl.paused.reason IS 'Why.';
COMMENT ON COLUMN pawl.paused.at IS 'Since when.';

CREATE TABLE pawl.horizon (
	workflow     text COLLATE "C" PRIMARY KEY CHECK (octet_length(workflow) BETWEEN 1 AND 64),
	replay       interval NOT NULL CHECK (replay > interval '0'),
	tombstone    interval CHECK (tombstone >= interval '0'),
	history      boolean NOT NULL DEFAULT false,
	history_kept interval CHECK (history_kept > interval '0'),
	CHECK (history OR history_kept IS NULL)
);
COMMENT ON TABLE pawl.horizon IS
	'How long the keys of each workflow are good for: the longest that any node has started with, unless an operator made it shorter.';
COMMENT ON COLUMN pawl.horizon.workflow IS 'The name of the workflow.';
COMMENT ON COLUMN pawl.horizon.replay IS 'How long an answer is replayed, from when it was given.';
COMMENT ON COLUMN pawl.horizon.tombstone IS 'How long the tombstone stays after that; NULL for ever.';
COMMENT ON COLUMN pawl.horizon.history IS 'Whether what is finished goes to command_history when its answer expires.';
COMMENT ON COLUMN pawl.horizon.history_kept IS 'How long it stays there; NULL for ever.';

-- What somebody may be answered must be on the disk before anybody can see it,
-- whatever the caller's transaction thinks of its own rows. What waits for a
-- standby stays as it is.
CREATE FUNCTION pawl.durable() RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
END $$;
COMMENT ON FUNCTION pawl.durable() IS 'Internal: the transaction is durable when it commits.';

-- A caller's own transaction may stay open for long after its transition was
-- written. It must not hold the log meanwhile, so its rows carry a provisional
-- negative position until it commits: their order is that of the sequence. Each
-- number has room for the other transitions of its command behind it.
CREATE SEQUENCE pawl.provisional AS bigint INCREMENT 1048576 MINVALUE -9223372036854775807 MAXVALUE -1048577 START -9223372036854775807;
COMMENT ON SEQUENCE pawl.provisional IS 'Positions of transitions whose transaction has not reached its commit yet.';
CREATE INDEX audit_provisional ON pawl.audit (position) WHERE position < 0;

-- The first call numbers all that the transaction has written: the head of each log
-- moves once, in the order of the tenants, and then its rows do, all at once; the
-- other calls find nothing left. Nobody sees another's provisional rows.
-- A transition's place is how many of its tenant's provisional positions are not after
-- its own. They are sought in a sorted array, so no statement joins, and none can be
-- planned badly.
-- Plans that were made while the tables were empty stay in use while they fill. So
-- every function that reads them does it by index. Of how many rows a range has the
-- planner guesses too many here: it must not compile for them, nor plan each time.
CREATE FUNCTION pawl.assign_position() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan SET jit = off SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	moved record;
	base bigint;
	numbered bigint;
BEGIN
	IF NOT EXISTS (SELECT FROM pawl.audit AS a WHERE a.position = NEW.position AND a.position < 0) THEN
		RETURN NULL;
	END IF;
	PERFORM pawl.durable(); -- it may have been turned off since
	FOR moved IN SELECT a.tenant, array_agg(a.position ORDER BY a.position) AS places, count(*) AS steps,
		min(a.at) AS since, max(a.at) AS until
			FROM pawl.audit AS a WHERE a.position >= NEW.position AND a.position < 0 GROUP BY a.tenant ORDER BY a.tenant LOOP
		base := pawl.advance(moved.tenant, moved.steps);
		WITH o AS (UPDATE pawl.outbox AS o SET position = base + width_bucket(o.position, moved.places)
			WHERE o.tenant = moved.tenant AND o.position BETWEEN moved.places[1] AND -1 AND o.at BETWEEN moved.since AND moved.until
			RETURNING o.position)
		SELECT count(DISTINCT o.position) INTO numbered FROM o;
		-- A partition that is being detached is not in sight any more.
		IF numbered < moved.steps THEN
			RAISE EXCEPTION 'the transaction was open until its events were past their age'
				USING ERRCODE = '40001', HINT = 'Begin another transaction, and decide again.';
		END IF;
		UPDATE pawl.audit AS a SET position = base + width_bucket(a.position, moved.places)
			WHERE a.position = ANY (moved.places) AND a.position < 0;
	END LOOP;
	RETURN NULL;
END $$;
COMMENT ON FUNCTION pawl.assign_position() IS 'Gives provisional transitions their places in the log, while their transaction commits.';

CREATE CONSTRAINT TRIGGER audit_position AFTER INSERT ON pawl.audit
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.position < 0)
	EXECUTE FUNCTION pawl.assign_position();
COMMENT ON TRIGGER audit_position ON pawl.audit IS 'Runs at commit, and only for rows with a provisional position.';

-- Inside of a statement there is no other way to stop a transaction whose
-- commit has already been sent.
CREATE FUNCTION pawl.expect(actual bigint, expected bigint) RETURNS bigint
	LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF actual <> expected THEN
		RAISE EXCEPTION 'expected % rows, found %', expected, actual USING ERRCODE = '40001';
	END IF;
	RETURN actual;
END $$;
COMMENT ON FUNCTION pawl.expect(bigint, bigint) IS 'Fails the transaction with a serialization failure unless the two are equal.';

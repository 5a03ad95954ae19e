-- The tables of the commit pipeline. Every statement that writes them names one
-- tenant by equality. Lock order, always: instances by id, commands by key, log
-- heads by tenant.
--
-- JSON is kept as json, not jsonb: the audit chain hashes the very bytes that
-- were decided, and a replay returns them.

CREATE TABLE pawl.instance (
	tenant       text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	id           uuid NOT NULL,
	workflow     text COLLATE "C" NOT NULL,
	definition   int NOT NULL CHECK (definition >= 1),
	business_key text COLLATE "C" CHECK (octet_length(business_key) BETWEEN 1 AND 255),
	state        text COLLATE "C" NOT NULL,
	version      bigint NOT NULL CHECK (version >= 1),
	data         json NOT NULL,
	attributes   jsonb,
	duties       json,
	open         boolean NOT NULL,
	chain        bytea NOT NULL CHECK (octet_length(chain) = 32),
	created_at   timestamptz NOT NULL,
	updated_at   timestamptz NOT NULL,
	PRIMARY KEY (tenant, id)
);
COMMENT ON TABLE pawl.instance IS 'One case, one order: where it is now.';
COMMENT ON COLUMN pawl.instance.tenant IS 'Whose instance it is; the first part of every key.';
COMMENT ON COLUMN pawl.instance.id IS 'UUIDv8 of tenant, workflow and business key where there is a business key, else UUIDv7.';
COMMENT ON COLUMN pawl.instance.workflow IS 'The name of its workflow.';
COMMENT ON COLUMN pawl.instance.definition IS 'The version of the definition that it began with.';
COMMENT ON COLUMN pawl.instance.business_key IS 'The caller''s own number, which the id is derived from.';
COMMENT ON COLUMN pawl.instance.state IS 'The state it is in.';
COMMENT ON COLUMN pawl.instance.version IS 'Counts its transitions; guards every update.';
COMMENT ON COLUMN pawl.instance.data IS 'The workflow''s data after the last transition.';
COMMENT ON COLUMN pawl.instance.attributes IS 'The declared attributes by which it can be found.';
COMMENT ON COLUMN pawl.instance.duties IS 'Who did the transitions whose actors others exclude: {"transition": ["actor"]}.';
COMMENT ON COLUMN pawl.instance.open IS 'False in a final state.';
COMMENT ON COLUMN pawl.instance.chain IS 'The hash of its last audit row.';
COMMENT ON COLUMN pawl.instance.created_at IS 'The time of its first transition.';
COMMENT ON COLUMN pawl.instance.updated_at IS 'The time of its last transition.';

-- Lists by workflow and state, page by page.
CREATE INDEX instance_list ON pawl.instance (tenant, workflow, state, id);
-- Lists by declared attribute. Workflows that declare none pay nothing.
CREATE INDEX instance_attributes ON pawl.instance USING gin (attributes jsonb_path_ops) WHERE attributes IS NOT NULL;

CREATE TABLE pawl.command (
	tenant      text COLLATE "C" NOT NULL,
	scope       text COLLATE "C" NOT NULL CHECK (octet_length(scope) BETWEEN 1 AND 255),
	key         text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
	fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
	status      text COLLATE "C" NOT NULL
		CHECK (status IN ('pending', 'processing', 'succeeded', 'failed_retryable', 'failed_final', 'expired')),
	workflow    text COLLATE "C" NOT NULL,
	transition  text COLLATE "C" NOT NULL,
	instance    uuid NOT NULL,
	version     bigint CHECK (version >= 1),
	actor       text NOT NULL,
	code        smallint CHECK (code BETWEEN 200 AND 599),
	body        text,
	created_at  timestamptz NOT NULL,
	finished_at timestamptz,
	expires_at  timestamptz,
	PRIMARY KEY (tenant, scope, key),
	CHECK ((status IN ('succeeded', 'failed_final')) = (body IS NOT NULL)),
	CHECK ((code IS NULL) = (body IS NULL)),
	CHECK (version IS NULL OR status = 'succeeded'),
	CHECK (status IN ('pending', 'processing', 'failed_retryable') OR finished_at IS NOT NULL)
);
COMMENT ON TABLE pawl.command IS 'One intent, named by tenant, scope and key: what was asked, and the answer. The primary key decides who wins.';
COMMENT ON COLUMN pawl.command.tenant IS 'Whose command it is.';
COMMENT ON COLUMN pawl.command.scope IS 'Within what the key is unique; by default the workflow and the instance.';
COMMENT ON COLUMN pawl.command.key IS 'The caller''s idempotency key.';
COMMENT ON COLUMN pawl.command.fingerprint IS 'SHA-256 of the canonical request; another request with this key is refused.';
COMMENT ON COLUMN pawl.command.status IS 'Where it stands.';
COMMENT ON COLUMN pawl.command.workflow IS 'The workflow that it is about.';
COMMENT ON COLUMN pawl.command.transition IS 'The transition that it asks for.';
COMMENT ON COLUMN pawl.command.instance IS 'The instance that it is about.';
COMMENT ON COLUMN pawl.command.version IS 'The version of the instance that it made; with the instance it finds the audit row and so the position. NULL when it changed nothing.';
COMMENT ON COLUMN pawl.command.actor IS 'Who asked.';
COMMENT ON COLUMN pawl.command.code IS 'The HTTP status of the answer.';
COMMENT ON COLUMN pawl.command.body IS 'The answer, byte for byte, but for its last member, the position.';
COMMENT ON COLUMN pawl.command.created_at IS 'When it was first asked.';
COMMENT ON COLUMN pawl.command.finished_at IS 'When it was answered for good.';
COMMENT ON COLUMN pawl.command.expires_at IS 'Until when the answer is replayed; after it the key is refused and never runs again.';

CREATE TABLE pawl.log (
	tenant text COLLATE "C" PRIMARY KEY CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	head   bigint NOT NULL DEFAULT 0 CHECK (head >= 0)
) WITH (fillfactor = 10);
COMMENT ON TABLE pawl.log IS 'The head of each tenant''s log. Its row lock is taken last and makes positions gapless and commit-ordered.';
COMMENT ON COLUMN pawl.log.tenant IS 'Whose log it is.';
COMMENT ON COLUMN pawl.log.head IS 'The position of the newest transition; 0 for an empty log.';

CREATE TABLE pawl.audit (
	tenant         text COLLATE "C" NOT NULL,
	instance       uuid NOT NULL,
	version        bigint NOT NULL CHECK (version >= 1),
	position       bigint NOT NULL CHECK (position <> 0),
	workflow       text COLLATE "C" NOT NULL,
	transition     text COLLATE "C" NOT NULL,
	from_state     text COLLATE "C",
	to_state       text COLLATE "C" NOT NULL,
	actor          text NOT NULL,
	reason         text,
	payload        json,
	data           json,
	scope          text COLLATE "C" NOT NULL,
	key            text COLLATE "C" NOT NULL,
	at             timestamptz NOT NULL,
	payload_digest bytea CHECK (octet_length(payload_digest) = 32),
	data_digest    bytea CHECK (octet_length(data_digest) = 32),
	hash           bytea NOT NULL CHECK (octet_length(hash) = 32),
	-- A replay asks for the position alone, and need not read the row for it.
	PRIMARY KEY (tenant, instance, version) INCLUDE (position),
	CHECK ((version = 1) = (from_state IS NULL)),
	CHECK ((payload IS NULL) = (payload_digest IS NOT NULL)),
	CHECK ((data IS NULL) = (data_digest IS NOT NULL))
);
COMMENT ON TABLE pawl.audit IS 'Every transition, for good: who, what, from, to, why, with what payload, and the data after it. Append-only.';
COMMENT ON COLUMN pawl.audit.tenant IS 'Whose instance it is.';
COMMENT ON COLUMN pawl.audit.instance IS 'The instance.';
COMMENT ON COLUMN pawl.audit.version IS 'The version that the transition made.';
COMMENT ON COLUMN pawl.audit.position IS 'Its place in the tenant''s log: gapless from 1, in commit order. Negative only inside of the transaction that writes it, until that commits.';
COMMENT ON COLUMN pawl.audit.workflow IS 'The workflow.';
COMMENT ON COLUMN pawl.audit.transition IS 'The transition.';
COMMENT ON COLUMN pawl.audit.from_state IS 'The state before; NULL for a creation.';
COMMENT ON COLUMN pawl.audit.to_state IS 'The state after.';
COMMENT ON COLUMN pawl.audit.actor IS 'Who did it.';
COMMENT ON COLUMN pawl.audit.reason IS 'Why, where the workflow says so.';
COMMENT ON COLUMN pawl.audit.payload IS 'The canonical payload; NULL when it was redacted.';
COMMENT ON COLUMN pawl.audit.data IS 'The data after the transition; NULL when it was redacted.';
COMMENT ON COLUMN pawl.audit.scope IS 'The scope of the command that did it.';
COMMENT ON COLUMN pawl.audit.key IS 'The key of the command that did it.';
COMMENT ON COLUMN pawl.audit.at IS 'The time of the decision.';
COMMENT ON COLUMN pawl.audit.payload_digest IS 'SHA-256 of a redacted payload, so that the chain still verifies.';
COMMENT ON COLUMN pawl.audit.data_digest IS 'SHA-256 of redacted data.';
COMMENT ON COLUMN pawl.audit.hash IS 'SHA-256 over this row and the hash of the instance''s previous row.';

CREATE TABLE pawl.outbox (
	tenant     text COLLATE "C" NOT NULL,
	position   bigint NOT NULL CHECK (position <> 0),
	type       text COLLATE "C" NOT NULL CHECK (octet_length(type) BETWEEN 1 AND 255),
	ordinal    int NOT NULL CHECK (ordinal >= 0),
	workflow   text COLLATE "C" NOT NULL,
	instance   uuid NOT NULL,
	version    bigint NOT NULL,
	transition text COLLATE "C" NOT NULL,
	state      text COLLATE "C" NOT NULL,
	at         timestamptz NOT NULL,
	payload    json NOT NULL,
	PRIMARY KEY (tenant, position, type)
);
COMMENT ON TABLE pawl.outbox IS 'The events of the log, at least one per position. Append-only: delivery writes nothing here. The primary key allows one event of a type per transition.';
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
COMMENT ON COLUMN pawl.outbox.payload IS 'The event''s data.';

CREATE TABLE pawl.definition (
	workflow   text COLLATE "C" NOT NULL,
	version    int NOT NULL,
	hash       text COLLATE "C" NOT NULL,
	spec       json NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (workflow, version)
);
COMMENT ON TABLE pawl.definition IS 'The definitions that have run here. A changed definition under an unchanged version is refused at start-up.';
COMMENT ON COLUMN pawl.definition.workflow IS 'The name of the workflow.';
COMMENT ON COLUMN pawl.definition.version IS 'The version of the definition.';
COMMENT ON COLUMN pawl.definition.hash IS 'SHA-256 of what the definition says.';
COMMENT ON COLUMN pawl.definition.spec IS 'What the definition says.';
COMMENT ON COLUMN pawl.definition.created_at IS 'When it was first seen.';

-- A caller's own transaction may stay open for long after its transition was
-- written. It must not hold the log meanwhile, so its rows carry a provisional
-- negative position until it commits.
CREATE SEQUENCE pawl.provisional AS bigint INCREMENT -1 MINVALUE -9223372036854775807 MAXVALUE -1 START -1;
COMMENT ON SEQUENCE pawl.provisional IS 'Positions of transitions whose transaction has not reached its commit yet.';

CREATE FUNCTION pawl.assign_position() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	next bigint;
BEGIN
	INSERT INTO pawl.log AS l (tenant, head) VALUES (NEW.tenant, 1)
		ON CONFLICT (tenant) DO UPDATE SET head = l.head + 1
		RETURNING head INTO next;
	UPDATE pawl.audit SET position = next
		WHERE tenant = NEW.tenant AND instance = NEW.instance AND version = NEW.version;
	UPDATE pawl.outbox SET position = next
		WHERE tenant = NEW.tenant AND position = NEW.position;
	RETURN NULL;
END $$;
COMMENT ON FUNCTION pawl.assign_position() IS 'Gives a provisional transition its place in the log, while its transaction commits.';

CREATE CONSTRAINT TRIGGER audit_position AFTER INSERT ON pawl.audit
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.position < 0)
	EXECUTE FUNCTION pawl.assign_position();
COMMENT ON TRIGGER audit_position ON pawl.audit IS 'Runs at commit, and only for rows with a provisional position.';

-- Inside of a statement there is no other way to stop a transaction whose
-- commit has already been sent.
CREATE FUNCTION pawl.expect(actual bigint, expected bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
	IF actual <> expected THEN
		RAISE EXCEPTION 'expected % rows, found %', expected, actual USING ERRCODE = '40001';
	END IF;
	RETURN actual;
END $$;
COMMENT ON FUNCTION pawl.expect(bigint, bigint) IS 'Fails the transaction with a serialization failure unless the two are equal.';

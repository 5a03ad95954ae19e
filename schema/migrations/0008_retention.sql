-- Retention: what becomes of keys after their answers expire, and of events after
-- everybody has them. docs/decisions/0010-retention.md says why it is so.

-- The events, by week, so that old ones go as a whole. A position is not part of
-- the partition's key, so the primary key of (tenant, position, type) is each
-- partition's own. All events of a transition have its time, and so are in one.
ALTER TABLE pawl.outbox RENAME TO outbox_before;
ALTER TABLE pawl.outbox_before RENAME CONSTRAINT outbox_pkey TO outbox_before_pkey;
CREATE TABLE pawl.outbox (LIKE pawl.outbox_before INCLUDING COMMENTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (at);
COMMENT ON TABLE pawl.outbox IS 'The events of the log, at least one per position, by week. Append-only: delivery writes nothing here. The primary key of a partition allows one event of a type per transition.';

CREATE TABLE pawl.command_history (
	tenant      text COLLATE "C" NOT NULL,
	scope       text COLLATE "C" NOT NULL,
	key         text COLLATE "C" NOT NULL,
	workflow    text COLLATE "C" NOT NULL,
	transition  text COLLATE "C" NOT NULL,
	instance    uuid NOT NULL,
	version     bigint,
	actor       text NOT NULL,
	status      text COLLATE "C" NOT NULL CHECK (status IN ('succeeded', 'failed_final')),
	code        smallint NOT NULL,
	body        text NOT NULL,
	failures    int,
	failure     text,
	created_at  timestamptz NOT NULL,
	finished_at timestamptz NOT NULL,
	expired_at  timestamptz NOT NULL,
	PRIMARY KEY (tenant, scope, key, expired_at)
) PARTITION BY RANGE (expired_at);
COMMENT ON TABLE pawl.command_history IS 'Commands whose answers have expired, by the month in which they did, of the workflows that want it.';
COMMENT ON COLUMN pawl.command_history.tenant IS 'Whose command it was.';
COMMENT ON COLUMN pawl.command_history.scope IS 'Within what its key was unique.';
COMMENT ON COLUMN pawl.command_history.key IS 'Its idempotency key.';
COMMENT ON COLUMN pawl.command_history.workflow IS 'The workflow that it was about.';
COMMENT ON COLUMN pawl.command_history.transition IS 'The transition that it asked for.';
COMMENT ON COLUMN pawl.command_history.instance IS 'The instance that it was about.';
COMMENT ON COLUMN pawl.command_history.version IS 'The version of the instance that it made; NULL when it changed nothing.';
COMMENT ON COLUMN pawl.command_history.actor IS 'Who asked.';
COMMENT ON COLUMN pawl.command_history.status IS 'How it ended.';
COMMENT ON COLUMN pawl.command_history.code IS 'The HTTP status of the answer.';
COMMENT ON COLUMN pawl.command_history.body IS 'The answer, but for its position.';
COMMENT ON COLUMN pawl.command_history.failures IS 'Attempts that failed or were lost; NULL when it was done at once.';
COMMENT ON COLUMN pawl.command_history.failure IS 'The message of the newest failure.';
COMMENT ON COLUMN pawl.command_history.created_at IS 'When it was first asked.';
COMMENT ON COLUMN pawl.command_history.finished_at IS 'When it was answered for good.';
COMMENT ON COLUMN pawl.command_history.expired_at IS 'Until when the answer was replayed.';

-- The owner of the tables makes their partitions, whoever needs one. Nobody who
-- reads or writes has to wait: attaching takes no lock on the parent that excludes
-- them. Whether there is one already is asked of the catalog as it is now, not as
-- a transaction of the caller's saw it first.
-- Its bounds are written as text, which must not depend on the session's settings.
CREATE FUNCTION pawl.make_partition(parent text, moment timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
DECLARE
	unit   text := CASE parent WHEN 'outbox' THEN 'week' WHEN 'command_history' THEN 'month' END;
	begins timestamp := date_trunc(unit, moment AT TIME ZONE 'UTC');
	name   text := parent || CASE unit WHEN 'week' THEN to_char(begins, '_IYYY"w"IW') ELSE to_char(begins, '_YYYY"m"MM') END;
	root   regclass;
BEGIN
	IF name IS NULL OR NOT isfinite(moment) THEN
		RAISE EXCEPTION 'there is no partition of "%" for %', parent, moment USING ERRCODE = '22023';
	END IF;
	IF pg_partition_root(to_regclass(format('pawl.%I', name))) = to_regclass(format('pawl.%I', parent)) THEN
		RETURN false;
	END IF;
	-- Current is the owner here. Others may need a partition, but not any number.
	IF abs(extract(epoch FROM moment - clock_timestamp())) > 366 * 86400
			AND NOT pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), current_user, 'MEMBER') THEN
		RAISE EXCEPTION '% is more than a year away', moment USING ERRCODE = '22023', HINT = 'The owner of the tables can make its partition.';
	END IF;
	-- The lock that attaching takes. With it the session hears of what others made.
	EXECUTE format('LOCK TABLE pawl.%I IN SHARE UPDATE EXCLUSIVE MODE', parent);
	root := pg_partition_root(to_regclass(format('pawl.%I', name)));
	IF root = to_regclass(format('pawl.%I', parent)) THEN
		RETURN false; -- somebody else was first
	ELSIF root IS NOT NULL THEN
		RAISE EXCEPTION 'partition "%" is being removed', name USING ERRCODE = '55006', HINT = 'Try again.';
	ELSIF to_regclass(format('pawl.%I', name)) IS NULL THEN
		EXECUTE format('CREATE TABLE pawl.%I (LIKE pawl.%I INCLUDING ALL)', name, parent);
		IF parent = 'outbox' THEN
			EXECUTE format('ALTER TABLE pawl.%I ADD PRIMARY KEY (tenant, position, type)', name);
		END IF;
		EXECUTE format('COMMENT ON TABLE pawl.%I IS %L', name, 'The ' || unit || ' from ' || to_char(begins, 'YYYY-MM-DD') || ' of ' || parent || '.');
	END IF;
	EXECUTE format('ALTER TABLE pawl.%I ATTACH PARTITION pawl.%I FOR VALUES FROM (%L) TO (%L)', parent, name,
		begins AT TIME ZONE 'UTC', (begins + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
	RETURN true;
END $$;
COMMENT ON FUNCTION pawl.make_partition IS 'Makes the partition of outbox or command_history that a moment is in, by the right of the tables'' owner; for others of up to a year from now. False: it is there.';
REVOKE EXECUTE ON FUNCTION pawl.make_partition FROM PUBLIC;

CREATE FUNCTION pawl.make_partitions(since timestamptz DEFAULT clock_timestamp(), until timestamptz DEFAULT NULL) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE made int;
BEGIN
	until := coalesce(until, since + interval '14 days');
	IF coalesce(until NOT BETWEEN since AND since + interval '1 year', true) THEN
		RAISE EXCEPTION 'the time is missing, or not one of up to a year' USING ERRCODE = '22023';
	END IF;
	SELECT count(*) FILTER (WHERE pawl.make_partition(p.parent, p.begins AT TIME ZONE 'UTC')) INTO made FROM (
		SELECT 'outbox', generate_series(date_trunc('week', since AT TIME ZONE 'UTC'), until AT TIME ZONE 'UTC', '1 week')
		UNION ALL
		SELECT 'command_history', generate_series(date_trunc('month', since AT TIME ZONE 'UTC'), until AT TIME ZONE 'UTC' + interval '1 month', '1 month')
	) AS p(parent, begins);
	RETURN made;
END $$;
COMMENT ON FUNCTION pawl.make_partitions IS 'Makes the partitions of a time, by default of the next two weeks and months. Returns how many were missing.';

SELECT pawl.make_partition('outbox', w.at) FROM (SELECT DISTINCT date_trunc('week', b.at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS at FROM pawl.outbox_before AS b) AS w;
SELECT pawl.make_partitions();
INSERT INTO pawl.outbox SELECT * FROM pawl.outbox_before;
-- Who had rights has them still, and who writes events may make room for them.
DO $$
DECLARE
	r record;
BEGIN
	FOR r IN SELECT a.privilege_type AS may, a.is_grantable AS passes, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS who
		FROM pg_class AS c, aclexplode(c.relacl) AS a WHERE c.oid = 'pawl.outbox_before'::regclass AND a.grantee <> c.relowner LOOP
		EXECUTE format('GRANT %s ON pawl.outbox TO %s', r.may, r.who) || CASE WHEN r.passes THEN ' WITH GRANT OPTION' ELSE '' END;
		IF r.may = 'INSERT' THEN
			EXECUTE format('GRANT EXECUTE ON FUNCTION pawl.make_partition TO %s', r.who);
		END IF;
	END LOOP;
END $$;
DROP TABLE pawl.outbox_before;

CREATE OR REPLACE FUNCTION pawl.assign_position() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	next bigint;
BEGIN
	INSERT INTO pawl.log AS l (tenant, head) VALUES (NEW.tenant, 1)
		ON CONFLICT (tenant) DO UPDATE SET head = l.head + 1
		RETURNING head INTO next;
	UPDATE pawl.audit SET position = next
		WHERE tenant = NEW.tenant AND instance = NEW.instance AND version = NEW.version;
	UPDATE pawl.outbox SET position = next
		WHERE tenant = NEW.tenant AND position = NEW.position AND at = NEW.at;
	-- A partition that is being detached is not in sight any more.
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the transaction was open until its events were past their age'
			USING ERRCODE = '40001', HINT = 'Begin another transaction, and decide again.';
	END IF;
	RETURN NULL;
END $$;

-- As before, but the time of replay may be left out, and it makes the partition that
-- its events need.
CREATE OR REPLACE FUNCTION pawl.transition(
	scope text, key text, attempt int, version bigint, state text, data json, payload json DEFAULT '{}', result json DEFAULT NULL,
	business_key text DEFAULT NULL, attributes jsonb DEFAULT NULL, reason text DEFAULT NULL, events json DEFAULT '[]',
	replay interval DEFAULT NULL, tenant text DEFAULT 'default') RETURNS json LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	c      pawl.command;
	i      pawl.instance;
	spec   jsonb;
	closes boolean;
	body   text;
	moment timestamptz;
	place  bigint;
BEGIN
	SELECT * INTO c FROM pawl.command AS x WHERE x.tenant = transition.tenant AND x.scope = transition.scope AND x.key = transition.key;
	IF (c.phase, c.status, c.attempt) IS DISTINCT FROM ('sql', 'processing', transition.attempt) THEN
		PERFORM pawl.unheld(tenant, scope, key, attempt, 'succeeded');
	ELSIF transition.version = 0 THEN
		SELECT d.version, d.spec INTO i.definition, spec FROM pawl.definition AS d WHERE d.workflow = c.workflow ORDER BY d.version DESC LIMIT 1;
		i.id := coalesce(pawl.instance_id(c.workflow, transition.business_key, transition.tenant),
			nullif(c.instance, '00000000-0000-0000-0000-000000000000'),
			-- A UUIDv7: milliseconds first.
			encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
				substr(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid);
		i.chain := decode(repeat('00', 32), 'hex');
	ELSE
		SELECT * INTO i FROM pawl.instance AS x WHERE x.tenant = transition.tenant AND x.id = c.instance FOR NO KEY UPDATE;
		IF i.workflow IS DISTINCT FROM c.workflow THEN
			RAISE EXCEPTION 'workflow "%" has no such instance', c.workflow USING ERRCODE = '22023',
				HINT = 'Name the workflow, the transition and the instance when you claim the key.';
		ELSIF i.version IS DISTINCT FROM transition.version THEN
			RAISE EXCEPTION 'the instance is at version %, not %', i.version, transition.version
				USING ERRCODE = '40001', HINT = 'Begin another transaction, claim the key again, and decide again.';
		ELSIF i.paused OR i.links -> 'in_flight' IS NOT NULL OR i.links -> 'parent' IS NOT NULL THEN
			RAISE EXCEPTION 'the instance %', CASE WHEN i.paused THEN 'is paused' ELSE 'is tied to a command in flight or to a parent' END
				USING ERRCODE = '55000', HINT = 'Try again later, or submit the command to the engine.';
		END IF;
		SELECT d.spec INTO spec FROM pawl.definition AS d WHERE d.workflow = c.workflow AND d.version = i.definition;
	END IF;
	IF spec IS NULL THEN
		RAISE EXCEPTION 'no node has started a workflow "%"', c.workflow USING ERRCODE = '22023',
			HINT = 'Name the workflow and the transition when you claim the key.';
	ELSIF EXISTS (SELECT FROM pawl.paused AS p WHERE p.tenant = transition.tenant AND p.workflow = c.workflow) THEN
		RAISE EXCEPTION 'workflow "%" is paused', c.workflow USING ERRCODE = '55000', HINT = 'Try again later.';
	END IF;
	PERFORM pawl.declared(spec, c.transition, i.state, transition.state, transition.business_key);
	closes := EXISTS (SELECT FROM jsonb_array_elements(spec -> 'states') AS s WHERE s ->> 'name' = transition.state AND s @> '{"final": true}');
	moment := clock_timestamp();
	i.chain := pawl.link(i.chain, i.id, transition.version + 1, moment, transition.payload, transition.data, transition.tenant, c.workflow,
		c.transition, i.state, transition.state, c.actor, transition.reason, transition.scope, transition.key);
	IF transition.version = 0 THEN
		INSERT INTO pawl.instance (tenant, id, workflow, definition, business_key, state, version, data, attributes, open, chain, created_at, updated_at)
		VALUES (transition.tenant, i.id, c.workflow, i.definition, transition.business_key, transition.state, 1, transition.data,
			transition.attributes, NOT closes, i.chain, moment, moment);
	ELSE
		UPDATE pawl.instance AS x SET state = transition.state, version = x.version + 1, data = transition.data,
			attributes = coalesce(transition.attributes, x.attributes), open = NOT closes, chain = i.chain, updated_at = moment
		WHERE x.tenant = transition.tenant AND x.id = i.id;
	END IF;
	body := format('{"instance":"%s","workflow":%s,"transition":%s,"state":%s,"version":%s,"at":"%s"%s}', i.id, to_json(c.workflow),
		to_json(c.transition), to_json(transition.state), transition.version + 1,
		to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ',"result":' || transition.result::text);
	PERFORM pawl.mark(transition.tenant, transition.scope, transition.key, transition.attempt, 'succeeded',
		CASE transition.version WHEN 0 THEN 201 ELSE 200 END, body, NULL, transition.replay, i.id, transition.version + 1);
	-- The trigger on the audit row gives both their position, so that row comes last.
	PERFORM pawl.make_partition('outbox', moment);
	place := nextval('pawl.provisional');
	INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at, payload)
	SELECT transition.tenant, place, e.type, e.ordinal, c.workflow, i.id, transition.version + 1, c.transition, transition.state, moment, e.payload
	FROM (SELECT c.workflow || '.' || c.transition, 0, transition.data
		UNION ALL
		SELECT m.value ->> 'type', m.ord::int, m.value -> 'payload'
		FROM json_array_elements(transition.events) WITH ORDINALITY AS m(value, ord)) AS e(type, ordinal, payload);
	INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor, reason, payload, data, scope, key, at, hash)
	VALUES (transition.tenant, i.id, transition.version + 1, place, c.workflow, c.transition, i.state, transition.state, c.actor,
		transition.reason, transition.payload, transition.data, transition.scope, transition.key, moment, i.chain);
	RETURN body;
END $$;

CREATE FUNCTION pawl.drop_partition(name text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE place regclass;
BEGIN
	IF name !~ '^(outbox_[0-9]{4,}w[0-9]{2}|command_history_[0-9]{4,}m[0-9]{2})$' THEN
		RAISE EXCEPTION '"%" is not the name of a partition', name USING ERRCODE = '22023';
	END IF;
	-- Whoever would attach it again takes this lock too.
	EXECUTE format('LOCK TABLE pawl.%I IN SHARE UPDATE EXCLUSIVE MODE', regexp_replace(name, '_[0-9]+[wm][0-9]+$', ''));
	place := to_regclass(format('pawl.%I', name));
	IF place IS NULL OR pg_partition_root(place) IS NOT NULL THEN
		RETURN false;
	END IF;
	EXECUTE format('DROP TABLE pawl.%I', name);
	RETURN true;
END $$;
COMMENT ON FUNCTION pawl.drop_partition IS 'Drops what was a partition and is detached. False: there is none.';
REVOKE EXECUTE ON FUNCTION pawl.drop_partition FROM PUBLIC;

CREATE TABLE pawl.duty (
	name         text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 64),
	token        bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
	claimed_by   text COLLATE "C",
	claimed_at   timestamptz,
	locked_until timestamptz,
	CONSTRAINT duty_lease CHECK ((claimed_by IS NULL) = (locked_until IS NULL) AND (claimed_by IS NULL) = (claimed_at IS NULL))
) WITH (fillfactor = 10);
COMMENT ON TABLE pawl.duty IS 'What one node does for all: who it is.';
COMMENT ON COLUMN pawl.duty.name IS 'What it does.';
COMMENT ON COLUMN pawl.duty.token IS 'The fencing token: counts the claims. What the node does names it.';
COMMENT ON COLUMN pawl.duty.claimed_by IS 'The node; NULL: none.';
COMMENT ON COLUMN pawl.duty.claimed_at IS 'Since when.';
COMMENT ON COLUMN pawl.duty.locked_until IS 'Until when its lease lasts unless it is renewed. After it any node takes over.';
INSERT INTO pawl.duty (name) VALUES ('retention');

-- Every answer that expires leaves a dead row, and so does every tombstone that is
-- forgotten. Those are to be a twentieth of the table at most, not a fifth.
ALTER TABLE pawl.command SET (autovacuum_vacuum_scale_factor = 0.05);

-- What callers have asked for later, without the engine's timers. Many may be due
-- at one time; so the key is a part of the place.
CREATE INDEX command_planned ON pawl.command (run_at, tenant, scope, key) WHERE phase = 'scheduled' AND NOT starts_with(scope, 'pawl:');

DROP FUNCTION pawl.purge(int, interval);
-- It takes no lock on a row that it waits for, and so needs no order of them.
-- Without jit = off the plans, whose other ways are made dear, would be compiled,
-- which takes longer than all else. To plan anew each time would take longer than
-- to look where nothing is due.
CREATE FUNCTION pawl.purge(
	batch int DEFAULT 1000, tombstone interval DEFAULT '30 days', moment timestamptz DEFAULT NULL, replay interval DEFAULT '24 hours',
	decided text[] DEFAULT NULL, after json DEFAULT NULL, since timestamptz DEFAULT '-infinity',
	OUT expired bigint, OUT forgotten bigint, OUT abandoned bigint, OUT archived bigint, OUT passed json)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
	due      tid[];
	month    timestamptz;
	soonest  timestamptz;
	planned  tid[];
	problem  constant text := '{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#command_abandoned",'
		'"title":"nobody went on with the command in time","status":408,"code":"command_abandoned",'
		'"detail":"nobody went on with the command in time. This answer is final for this key; another try needs a new key.","final":true}';
BEGIN
	IF coalesce(batch < 1 OR tombstone < interval '0' OR replay <= interval '0', true) THEN
		RAISE EXCEPTION 'the batch or the time of replay is not positive, or the time of the tombstones is negative' USING ERRCODE = '22023';
	END IF;
	purge.moment := coalesce(purge.moment, clock_timestamp());
	expired := 0; forgotten := 0; abandoned := 0; archived := 0;
	due := ARRAY(SELECT c.ctid FROM pawl.command AS c WHERE c.expires_at >= purge.since AND c.expires_at <= purge.moment AND c.phase IS NULL
		ORDER BY c.expires_at LIMIT batch FOR UPDATE SKIP LOCKED);
	IF cardinality(due) > 0 THEN
		FOR month IN SELECT DISTINCT date_trunc('month', c.expires_at, 'UTC') FROM pawl.command AS c JOIN pawl.horizon AS h ON h.workflow = c.workflow
				WHERE c.ctid = ANY (due) AND c.status <> 'expired' AND h.history LOOP
			PERFORM pawl.make_partition('command_history', month);
		END LOOP;
		WITH past AS MATERIALIZED (
			SELECT c.ctid AS place, c.*, c.status <> 'expired' AS answer, c.status <> 'expired' AND coalesce(h.history, false) AS wanted,
				CASE WHEN c.status = 'expired' THEN c.expires_at WHEN c.forget_at IS NOT NULL THEN nullif(c.forget_at, 'infinity')
					WHEN h.workflow IS NULL THEN c.expires_at + purge.tombstone ELSE c.expires_at + h.tombstone END AS forget
			FROM pawl.command AS c LEFT JOIN pawl.horizon AS h ON h.workflow = c.workflow WHERE c.ctid = ANY (due)),
		kept AS (
			INSERT INTO pawl.command_history (tenant, scope, key, workflow, transition, instance, version, actor, status, code, body,
				failures, failure, created_at, finished_at, expired_at)
			SELECT p.tenant, p.scope, p.key, p.workflow, p.transition, p.instance, p.version, p.actor, p.status, p.code, p.body,
				p.failures, p.failure, p.created_at, p.finished_at, p.expires_at FROM past AS p WHERE p.wanted),
		gone AS (
			DELETE FROM pawl.command AS c WHERE c.ctid = ANY (ARRAY(SELECT p.place FROM past AS p WHERE p.forget <= purge.moment))),
		turned AS (
			UPDATE pawl.command AS c SET status = 'expired', code = NULL, body = NULL, expires_at = p.forget, forget_at = NULL, attempt = NULL,
				failures = NULL, revision = NULL, claimed_by = NULL, claimed_at = NULL, progress = NULL, failure = NULL, cancelled_by = NULL,
				unsure = NULL, updated_at = NULL
			FROM past AS p WHERE c.ctid = p.place AND (p.forget <= purge.moment) IS NOT TRUE)
		SELECT count(*) FILTER (WHERE p.answer), count(*) FILTER (WHERE p.forget <= purge.moment), count(*) FILTER (WHERE p.wanted)
			INTO expired, forgotten, archived FROM past AS p;
	END IF;
	IF cardinality(due) < batch THEN
		-- No workflow's horizon is shorter than this one. A caller's own, in nanoseconds,
		-- is in the request; the largest number is for ever.
		soonest := purge.moment - least(purge.replay, (SELECT min(h.replay) FROM pawl.horizon AS h));
		-- Many may be due and stay, because they are decided or paused. One call reads a
		-- batch, and the next goes on behind it, so that those hide nobody for ever.
		IF decided IS NOT NULL THEN
			SELECT array_agg(l.place) FILTER (WHERE l.workflow <> ALL (decided)),
				CASE WHEN count(*) = batch THEN (array_agg(json_build_array(l.run_at, l.tenant, l.scope, l.key)))[batch] END INTO planned, passed
			FROM (SELECT c.ctid AS place, c.* FROM pawl.command AS c
				WHERE c.phase = 'scheduled' AND NOT starts_with(c.scope, 'pawl:') AND c.run_at <= soonest AND (c.run_at, c.tenant, c.scope, c.key)
					> (coalesce((purge.after ->> 0)::timestamptz, '-infinity'), coalesce(purge.after ->> 1, ''), coalesce(purge.after ->> 2, ''), coalesce(purge.after ->> 3, ''))
				ORDER BY c.run_at, c.tenant, c.scope, c.key LIMIT batch) AS l;
		END IF;
		WITH late AS MATERIALIZED (
			SELECT d.ctid AS place, k.replay, (d.request ->> 'tombstone_ns')::bigint AS tombstone FROM pawl.command AS d
			LEFT JOIN pawl.horizon AS h ON h.workflow = d.workflow
			CROSS JOIN LATERAL (SELECT coalesce((d.request ->> 'replay_ns')::bigint / 1000 * interval '1 microsecond', h.replay, purge.replay) AS replay) AS k
			WHERE d.ctid = ANY (planned) AND d.run_at <= purge.moment - k.replay
				AND NOT EXISTS (SELECT FROM pawl.paused AS p WHERE p.tenant = d.tenant AND p.workflow = d.workflow)
				AND NOT coalesce((SELECT i.paused FROM pawl.instance AS i WHERE i.tenant = d.tenant AND i.id = d.instance), false)), -- not a join: one by one
		still AS MATERIALIZED (
			SELECT f.place, l.replay, l.tombstone FROM late AS l CROSS JOIN LATERAL (
				SELECT c.ctid AS place FROM pawl.command AS c WHERE c.ctid = l.place AND c.phase = 'scheduled'
					AND c.locked_until IS NULL AND c.run_at <= purge.moment - l.replay
				FOR UPDATE SKIP LOCKED) AS f
			UNION ALL -- what is left of the batch; the planned ones that it left out would be passed over
			SELECT g.place, coalesce(h.replay, purge.replay), NULL FROM (
				SELECT c.ctid AS place, c.workflow FROM pawl.command AS c WHERE c.given_up_at <= purge.moment
				ORDER BY c.given_up_at LIMIT batch - (SELECT count(*) FROM late) FOR UPDATE SKIP LOCKED) AS g
			LEFT JOIN pawl.horizon AS h ON h.workflow = g.workflow)
		UPDATE pawl.command AS c SET status = 'failed_final', code = 408, body = problem, failure = coalesce(c.failure, 'nobody went on with it in time'),
			phase = NULL, request = NULL, run_at = NULL, given_up_at = NULL, stuck = NULL, revision = c.revision + 1, updated_at = purge.moment,
			finished_at = purge.moment, expires_at = purge.moment + s.replay, forget_at = CASE s.tombstone WHEN 9223372036854775807 THEN 'infinity'
				ELSE purge.moment + s.replay + s.tombstone / 1000 * interval '1 microsecond' END
		FROM still AS s WHERE c.ctid = s.place;
		GET DIAGNOSTICS abandoned = ROW_COUNT;
	END IF;
END $$;
COMMENT ON FUNCTION pawl.purge IS 'Ends what is past its horizon, at most batch of each, the oldest first, none that somebody has locked: answers become tombstones, tombstones are forgotten, and what nobody goes on with fails. It is for SQL callers and the engine alike. Zeros: there was nothing to do. Of the scheduled commands one call looks at batch, those that come after a place; passed is the place for the next, NULL at the end. since leaves out what was due before.';

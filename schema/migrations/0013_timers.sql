-- needs: 8

CREATE FUNCTION pawl.duration(written text) RETURNS interval
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT floor(sum(m.part[1]::numeric * CASE m.part[2] WHEN 'h' THEN 3600000000 WHEN 'm' THEN 60000000 WHEN 's' THEN 1000000
		WHEN 'ms' THEN 1000 WHEN 'ns' THEN 0.001 ELSE 1 END)) * interval '1 microsecond'
	FROM regexp_matches(written, '([0-9]+(?:\.[0-9]+)?)(h|ms|m|s|ns|us|µs)', 'g') AS m(part)
$$;
COMMENT ON FUNCTION pawl.duration IS 'Internal: a duration of a definition, such as 1h30m0.5s, in whole microseconds.';

-- The rows are those that the engine writes: see change.setTimers in internal/kernel/decide. What is armed and disarmed depends on the state
-- alone; a timer whose time depends on the data is refused before.
CREATE FUNCTION pawl.set_timers(tenant text, spec jsonb, i pawl.instance, before text, version bigint, moment timestamptz) RETURNS void
	LANGUAGE plpgsql SET enable_seqscan = off SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	t      jsonb;
	place  text;
	runs   boolean; -- after the transition
	ran    boolean; -- before it
BEGIN
	FOR t IN SELECT x FROM jsonb_array_elements(spec -> 'timers') AS x ORDER BY x ->> 'name' COLLATE "C" LOOP
		runs := t -> 'in' ? i.state;
		ran := coalesce(t -> 'in' ? before, false);
		place := 'pawl:timer:' || i.id || ':' || (t ->> 'name');
		IF ran AND NOT runs THEN
			DELETE FROM pawl.command AS c WHERE c.tenant = set_timers.tenant AND c.scope = place AND c.phase = 'scheduled';
		ELSIF runs AND NOT ran THEN
			INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at, phase,
				attempt, failures, revision, run_at, request, updated_at, definition)
			VALUES (set_timers.tenant, place, set_timers.version::text,
				pawl.fingerprint(i.workflow, t ->> 'do', '{}', i.id, 'pawl:timer'), 'pending', i.workflow, t ->> 'do', i.id,
				'pawl:timer', moment, 'scheduled', 0, 0, 0, moment + pawl.duration(t ->> 'after'), '{"payload":{},"roles":["*"]}',
				moment, i.definition);
		END IF;
	END LOOP;
END $$;
COMMENT ON FUNCTION pawl.set_timers IS
	'Internal: disarms the timers of the state that an instance has left, and arms those of the state that it is in.';

-- What the declaration says about a transition, to a caller that cannot run the
-- workflow's code. It refuses what only the engine can do.
CREATE OR REPLACE FUNCTION pawl.declared(
	spec jsonb, transition text, before text, after text, business_key text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	workflow text := format('version %s of workflow "%s"', spec ->> 'version', spec ->> 'name');
	step     jsonb;
	missing  text;
BEGIN
	SELECT t INTO step FROM jsonb_array_elements(spec -> 'transitions') AS t
		WHERE t ->> 'name' = declared.transition AND CASE WHEN before IS NULL THEN t @> '{"start": true}' ELSE t -> 'from' ? before END;
	IF NOT FOUND THEN
		RAISE EXCEPTION '% declares no "%" in state "%"', workflow, declared.transition, coalesce(before, '') USING ERRCODE = '55000';
	ELSIF NOT (step -> 'to' ? after OR step -> 'to' ? '(stay)' AND before = after) THEN
		RAISE EXCEPTION '% declares that "%" leads to %, not to "%"', workflow, declared.transition, step -> 'to', after USING ERRCODE = '55000';
	ELSIF step @> '{"business_key": true}' <> (business_key IS NOT NULL) THEN
		RAISE EXCEPTION '% declares that "%" has % business key', workflow, declared.transition,
			CASE WHEN business_key IS NULL THEN 'a' ELSE 'no' END USING ERRCODE = '22023';
	END IF;
	missing := CASE
		WHEN step ? 'activity' THEN 'an activity'
		WHEN step ? 'guards' THEN 'guards'
		WHEN jsonb_path_exists(spec, '$.transitions[*] ? (@.not_by[*] == $name || @.not_by_last[*] == $name
				|| @.name == $name && (exists (@.not_by[*]) || exists (@.not_by_last[*])))',
			jsonb_build_object('name', declared.transition)) THEN 'a separation of duties'
		ELSE (SELECT format('the timer "%s", whose time the workflow takes from the data', t ->> 'name')
			FROM jsonb_array_elements(spec -> 'timers') WITH ORDINALITY AS m(t, ord)
			WHERE t @> '{"from_data": true}' AND t -> 'in' ? after ORDER BY m.ord LIMIT 1)
	END;
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION '"%" has %, which only the engine can see to', declared.transition, missing
			USING ERRCODE = '0A000', HINT = 'Submit it to the engine.';
	END IF;
END $$;
COMMENT ON FUNCTION pawl.declared IS 'Internal: refuses a transition that a definition does not declare, or that SQL alone cannot make.';

CREATE OR REPLACE FUNCTION pawl.transition(
	scope text, key text, attempt int, version bigint, state text, data json, payload json DEFAULT '{}', result json DEFAULT NULL,
	business_key text DEFAULT NULL, attributes jsonb DEFAULT NULL, reason text DEFAULT NULL, events json DEFAULT '[]',
	replay interval DEFAULT NULL, tenant text DEFAULT 'default') RETURNS json
	LANGUAGE plpgsql SET enable_seqscan = off SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	c       pawl.command;
	was     pawl.instance;
	i       pawl.instance;
	spec    jsonb;
	closes  boolean;
	emitted bytea;
	body    text;
	moment  timestamptz;
	place   bigint;
BEGIN
	SELECT * INTO c FROM pawl.command AS x WHERE x.tenant = transition.tenant AND x.scope = transition.scope AND x.key = transition.key;
	IF (c.phase, c.status, c.attempt) IS DISTINCT FROM ('sql', 'processing', transition.attempt) THEN
		PERFORM pawl.unheld(tenant, scope, key, attempt, 'succeeded');
	ELSIF transition.version = 0 THEN
		-- Before it is read which version begins: a migration that empties a version waits for those who have this lock.
		LOCK TABLE pawl.instance IN ROW EXCLUSIVE MODE;
		SELECT d.version, d.spec INTO i.definition, spec FROM pawl.definition AS d WHERE d.workflow = c.workflow
			AND d.version <= coalesce((SELECT b.version FROM pawl.begins AS b WHERE b.workflow = c.workflow), d.version)
			ORDER BY d.version DESC LIMIT 1;
		i.id := coalesce(pawl.instance_id(c.workflow, transition.business_key, transition.tenant),
			nullif(c.instance, '00000000-0000-0000-0000-000000000000'),
			-- A UUIDv7: milliseconds first.
			encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) PLACING
				substr(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid);
		i.chain := decode(repeat('00', 32), 'hex');
	ELSE
		SELECT * INTO i FROM pawl.instance AS x WHERE x.tenant = transition.tenant AND x.id = c.instance
			ORDER BY x.bucket DESC LIMIT 1 FOR NO KEY UPDATE;
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
		RAISE EXCEPTION 'no node has started a workflow "%"', c.workflow USING ERRCODE = '22023', HINT = CASE c.workflow
			WHEN '' THEN 'Name the workflow and the transition when you claim the key.' ELSE 'Start a node that has it, once.' END;
	ELSIF EXISTS (SELECT FROM pawl.paused AS p WHERE p.tenant = transition.tenant AND p.workflow = c.workflow) THEN
		RAISE EXCEPTION 'workflow "%" is paused', c.workflow USING ERRCODE = '55000', HINT = 'Try again later.';
	END IF;
	IF EXISTS (SELECT FROM json_array_elements(transition.events) AS m(value) WHERE m.value ->> 'type' ~ '[\u0001-\u001f\u007f-\u009f]') THEN
		RAISE EXCEPTION 'the type of an event has control characters' USING ERRCODE = '22023';
	ELSIF EXISTS (SELECT FROM json_array_elements(transition.events) AS m(value) WHERE m.value -> 'payload' IS NULL) THEN
		RAISE EXCEPTION 'an event has no payload' USING ERRCODE = '23502', HINT = 'Without anything to say it is null, or {}.';
	END IF;
	PERFORM pawl.declared(spec, c.transition, i.state, transition.state, transition.business_key);
	closes := EXISTS (SELECT FROM jsonb_array_elements(spec -> 'states') AS s
		WHERE s ->> 'name' = transition.state AND s @> '{"final": true}');
	moment := clock_timestamp();
	was := i;
	i.business_key := coalesce(i.business_key, transition.business_key);
	i.workflow := c.workflow;
	i.state := transition.state;
	i.data := transition.data;
	i.attributes := coalesce(transition.attributes, i.attributes);
	i.open := NOT closes;
	i.paused := false; -- or it were refused
	SELECT sha256(string_agg(pawl.fields(m.value ->> 'type', (m.value -> 'payload')::text), '' ORDER BY m.ord)) INTO emitted
		FROM json_array_elements(transition.events) WITH ORDINALITY AS m(value, ord);
	i.chain := pawl.link(i.chain, CASE transition.version WHEN 0 THEN i.chain ELSE pawl.standing(was) END,
		pawl.standing(i), transition.payload, i.id, transition.version + 1, moment, emitted, transition.tenant, c.workflow, c.transition,
		was.state, i.state, c.actor, transition.reason, transition.scope, transition.key, '', ''); -- no operator's, and nothing is
		-- known of the credential
	IF transition.version = 0 THEN
		INSERT INTO pawl.instance (tenant, id, workflow, definition, business_key, state, version, data, attributes, open,
			chain, created_at, updated_at)
		VALUES (transition.tenant, i.id, c.workflow, i.definition, i.business_key, i.state, 1, i.data, i.attributes, i.open,
			i.chain, moment, moment);
	ELSE
		UPDATE pawl.instance AS x SET state = i.state, version = x.version + 1, bucket = (x.version + 1) / 4, data = i.data,
			attributes = i.attributes, open = i.open, chain = i.chain, updated_at = moment
		WHERE x.tenant = transition.tenant AND x.id = i.id AND x.bucket = i.bucket;
	END IF;
	PERFORM pawl.set_timers(transition.tenant, spec, i, was.state, transition.version + 1, moment);
	body := format('{"instance":"%s","workflow":%s,"transition":%s,"state":%s,"version":%s,"at":"%s"%s}', i.id, to_json(c.workflow),
		to_json(c.transition), to_json(transition.state), transition.version + 1,
		to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), ',"result":' || transition.result::text);
	PERFORM pawl.mark(transition.tenant, transition.scope, transition.key, transition.attempt, 'succeeded',
		CASE transition.version WHEN 0 THEN 201 ELSE 200 END, body, NULL, transition.replay, i.id, transition.version + 1);
	-- The trigger on the audit row gives both their position, so that row comes last.
	PERFORM pawl.make_partition('outbox', moment, waits => false);
	place := nextval('pawl.provisional');
	INSERT INTO pawl.outbox (tenant, position, type, ordinal, workflow, instance, version, transition, state, at,
		business_key, attributes, payload)
	SELECT transition.tenant, place, e.type, e.ordinal, c.workflow, i.id, transition.version + 1, c.transition, transition.state, moment,
		coalesce(transition.business_key, i.business_key), coalesce(transition.attributes, i.attributes), e.payload
	FROM (SELECT c.workflow || '.' || c.transition, 0, NULL::json -- the audit row has it
		UNION ALL
		SELECT m.value ->> 'type', m.ord::int, m.value -> 'payload'
		FROM json_array_elements(transition.events) WITH ORDINALITY AS m(value, ord)) AS e(type, ordinal, payload);
	INSERT INTO pawl.audit (tenant, instance, version, position, workflow, transition, from_state, to_state, actor, reason, payload, data,
		scope, key, at, hash, rest_digest, events_digest)
	VALUES (transition.tenant, i.id, transition.version + 1, place, c.workflow, c.transition, was.state, transition.state, c.actor,
		transition.reason, transition.payload, transition.data, transition.scope, transition.key, moment, i.chain,
		nullif(pawl.rest(i.attributes, i.actors, i.links), pawl.rest(was.attributes, was.actors, was.links)), emitted);
	RETURN body;
END $$;
COMMENT ON FUNCTION pawl.transition IS
	'Ends a claimed command with a transition that its caller has decided: the instance, its audit row, its events and the answer. The '
	'version is the one that was decided on, 0 to create an instance. Returns the answer.';

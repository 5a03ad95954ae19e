-- The contract in SQL: callers that speak only SQL meet those of the engine on
-- the same rows. docs/sql.md says how the functions are used. Everything happens
-- in the caller's transaction, which should be READ COMMITTED: at another level
-- what is an answer here becomes a serialization failure.

CREATE FUNCTION pawl.check_text(what text, given text, longest int, state text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(given, '') = '' THEN
		RAISE EXCEPTION 'the % is missing', what USING ERRCODE = state;
	ELSIF octet_length(given) > longest THEN
		RAISE EXCEPTION 'the % is longer than % bytes', what, longest USING ERRCODE = state;
	END IF;
END $$;
COMMENT ON FUNCTION pawl.check_text IS 'Internal: refuses a text that is missing or too long.';

CREATE FUNCTION pawl.check_hash(hash bytea) RETURNS void LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF hash IS NULL OR octet_length(hash) <> 32 THEN
		RAISE EXCEPTION 'the request hash is missing or is not 32 bytes' USING ERRCODE = 'P4003',
			HINT = 'Give sha256(convert_to(request, ''UTF8'')) of a text that is the same on every retry.';
	END IF;
END $$;
COMMENT ON FUNCTION pawl.check_hash IS 'Internal: refuses what is not a SHA-256.';

-- The engine writes times without the zeros at their end.
CREATE FUNCTION pawl.answer(c pawl.command) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN c.state IS NULL THEN c.body ELSE format('{"instance":"%s","workflow":%s,"transition":%s,"state":%s,"version":%s,"at":"%sZ"%s}',
		c.instance, to_json(c.workflow), to_json(c.transition), to_json(c.state), c.version,
		rtrim(rtrim(to_char(c.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '0'), '.'), ',"result":' || c.body) END
$$;
COMMENT ON FUNCTION pawl.answer IS 'The stored answer of a command, byte for byte, but for its last member, the position. NULL: there is none, or not any more.';

CREATE FUNCTION pawl.scope_of(a pawl.audit) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(a.scope, a.workflow || ':' || CASE a.version WHEN 1 THEN a.transition ELSE a.instance::text END)
$$;
COMMENT ON FUNCTION pawl.scope_of IS 'The scope of the command that made a transition.';

-- Finished commands are read without a lock, so that a replay writes nothing.
CREATE FUNCTION pawl.claim(
	scope text, key text, hash bytea, workflow text DEFAULT '', transition text DEFAULT '', instance uuid DEFAULT NULL,
	actor text DEFAULT 'local', lease interval DEFAULT '30 seconds', tenant text DEFAULT 'default',
	OUT outcome text, OUT attempt int, OUT code int, OUT body json)
LANGUAGE plpgsql SET enable_seqscan = off SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	c      pawl.command;
	moment timestamptz;
	holder text := format('sql %s %s', session_user, pg_backend_pid());
BEGIN
	PERFORM pawl.check_text('tenant', claim.tenant, 64, '22023');
	PERFORM pawl.check_text('idempotency scope', claim.scope, 255, 'P4000');
	PERFORM pawl.check_text('idempotency key', claim.key, 255, 'P4001');
	PERFORM pawl.check_hash(claim.hash);
	PERFORM pawl.check_text('actor', claim.actor, 255, '22023');
	IF starts_with(claim.scope, 'pawl:') THEN
		RAISE EXCEPTION 'scopes that begin with "pawl:" are Pawl''s own' USING ERRCODE = 'P4000';
	ELSIF starts_with(claim.actor, 'pawl:') THEN
		RAISE EXCEPTION 'actors that begin with "pawl:" are Pawl''s own' USING ERRCODE = '22023';
	ELSIF coalesce(claim.lease <= interval '0', true) THEN
		RAISE EXCEPTION 'the lease is missing or already over' USING ERRCODE = '22023';
	END IF;
	PERFORM pawl.durable();
	-- Instances are locked before commands, by everybody.
	PERFORM FROM pawl.instance AS i WHERE i.tenant = claim.tenant AND i.id = claim.instance ORDER BY i.bucket DESC LIMIT 1 FOR NO KEY UPDATE;
	LOOP
		moment := clock_timestamp();
		INSERT INTO pawl.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, created_at,
			phase, attempt, failures, revision, claimed_by, claimed_at, held_until, request, updated_at)
		VALUES (claim.tenant, claim.scope, claim.key, claim.hash, 'processing', coalesce(claim.workflow, ''), coalesce(claim.transition, ''),
			coalesce(claim.instance, '00000000-0000-0000-0000-000000000000'), claim.actor, moment,
			'sql', 1, 0, 0, holder, moment, moment + claim.lease, '{}', moment)
		ON CONFLICT DO NOTHING;
		IF FOUND THEN
			outcome := 'new'; attempt := 1; RETURN;
		END IF;
		SELECT * INTO c FROM pawl.command AS x WHERE x.tenant = claim.tenant AND x.scope = claim.scope AND x.key = claim.key;
		IF c.phase = 'sql' THEN
			SELECT * INTO c FROM pawl.command AS x
				WHERE x.tenant = claim.tenant AND x.scope = claim.scope AND x.key = claim.key FOR NO KEY UPDATE;
		END IF;
		EXIT WHEN FOUND; -- else it was purged since
	END LOOP;
	moment := clock_timestamp(); -- the locks may have taken a while
	IF c.fingerprint <> claim.hash THEN
		RAISE EXCEPTION 'the idempotency key was used with another request' USING ERRCODE = 'P4002',
			DETAIL = format('scope %s, key %s', to_json(claim.scope), to_json(claim.key)), HINT = 'A new intent needs a new key.';
	ELSIF c.phase = 'sql' AND (c.status = 'failed_retryable' OR c.held_until <= moment) THEN
		outcome := CASE c.status WHEN 'processing' THEN 'taken_over' ELSE 'retry' END;
		UPDATE pawl.command AS x SET status = 'processing', attempt = x.attempt + 1, revision = x.revision + 1, claimed_by = holder,
			failures = x.failures + CASE c.status WHEN 'processing' THEN 1 ELSE 0 END,
			failure = CASE c.status WHEN 'processing' THEN 'the lease of ' || x.claimed_by || ' ran out' ELSE x.failure END,
			claimed_at = moment, held_until = moment + claim.lease, given_up_at = NULL, updated_at = moment
		WHERE x.tenant = claim.tenant AND x.scope = claim.scope AND x.key = claim.key
		RETURNING x.attempt INTO attempt;
	ELSIF c.phase IS NOT NULL THEN
		RAISE EXCEPTION 'a command with this key is being worked on' USING ERRCODE = 'P4029',
			DETAIL = format('Its status is %s, its attempt %s%s.', c.status, c.attempt, ', held until ' || c.held_until),
			HINT = 'Ask again with the same key.';
	ELSIF c.status = 'expired' OR c.expires_at <= moment THEN
		RAISE EXCEPTION 'the idempotency key is past its horizon' USING ERRCODE = 'P4099',
			DETAIL = 'Its answer is gone, and it will not run again.', HINT = 'A new intent needs a new key.';
	ELSIF c.status = 'failed_final' THEN
		RAISE EXCEPTION 'the command has failed for good' USING ERRCODE = 'P4030', DETAIL = c.body, HINT = 'Another try needs a new key.';
	ELSE
		outcome := 'replay'; attempt := c.attempt; code := c.code;
		-- The position is not stored with the answer: it is given while that is written.
		SELECT left(pawl.answer(c), -1) || ',"position":' || a.position || '}' INTO body FROM pawl.audit AS a
			WHERE a.tenant = c.tenant AND a.instance = c.instance AND a.version = c.version AND a.position > 0;
		body := coalesce(body, pawl.answer(c)::json);
	END IF;
END $$;
COMMENT ON FUNCTION pawl.claim IS
	'Claims a key for one attempt: outcome new, retry or taken_over says to do it, replay has the stored answer. Else P4000 to P4003, '
	'P4029, P4030 or P4099.';

CREATE FUNCTION pawl.unheld(tenant text, scope text, key text, attempt int, mark text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE how text;
BEGIN
	SELECT format('Its status is %s, its attempt %s.', x.status, coalesce(x.attempt, 0)) INTO how FROM pawl.command AS x
		WHERE x.tenant = unheld.tenant AND x.scope = unheld.scope AND x.key = unheld.key;
	RAISE EXCEPTION 'the command is not, or no longer, held by attempt %', unheld.attempt
		USING ERRCODE = CASE unheld.mark WHEN 'succeeded' THEN 'P4010' ELSE 'P4011' END, DETAIL = coalesce(how, 'There is no such command.'),
			HINT = 'Roll back, and claim the key again: that tells what became of it.';
END $$;
COMMENT ON FUNCTION pawl.unheld IS 'Internal: says why a command cannot be marked.';

-- Callers that do not say how long an answer is replayed mean what the workflow
-- says.
CREATE FUNCTION pawl.mark(
	tenant text, scope text, key text, attempt int, status text, code int, body text, failure text, replay interval,
	instance uuid DEFAULT NULL, version bigint DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql SET enable_seqscan = off SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	moment timestamptz := clock_timestamp();
	ends   boolean := mark.status <> 'failed_retryable';
	until  timestamptz;
BEGIN
	IF mark.replay <= interval '0' THEN
		RAISE EXCEPTION 'the time of replay is already over' USING ERRCODE = '22023';
	END IF;
	PERFORM pawl.durable();
	until := moment + coalesce(mark.replay, (SELECT h.replay FROM pawl.command AS x JOIN pawl.horizon AS h ON h.workflow = x.workflow
		WHERE x.tenant = mark.tenant AND x.scope = mark.scope AND x.key = mark.key), interval '24 hours');
	UPDATE pawl.command AS x SET status = mark.status, code = mark.code, body = mark.body, failure = coalesce(mark.failure, x.failure),
		failures = x.failures + CASE mark.status WHEN 'succeeded' THEN 0 ELSE 1 END, revision = x.revision + 1, held_until = NULL,
		instance = coalesce(mark.instance, x.instance), version = mark.version, updated_at = moment,
		phase = CASE WHEN NOT ends THEN x.phase END, request = CASE WHEN NOT ends THEN x.request END,
		finished_at = CASE WHEN ends THEN moment END, expires_at = CASE WHEN ends THEN until END,
		given_up_at = CASE WHEN NOT ends THEN until END
	WHERE x.tenant = mark.tenant AND x.scope = mark.scope AND x.key = mark.key
		AND x.phase = 'sql' AND x.status = 'processing' AND x.attempt = mark.attempt;
	IF NOT FOUND THEN PERFORM pawl.unheld(tenant, scope, key, attempt, status); END IF;
END $$;
COMMENT ON FUNCTION pawl.mark IS 'Internal: writes what an attempt came to, if it is the newest and holds the command.';

CREATE FUNCTION pawl.succeed(
	scope text, key text, attempt int, body json DEFAULT '{}', code int DEFAULT 200,
	replay interval DEFAULT NULL, tenant text DEFAULT 'default') RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(json_typeof(body) <> 'object' OR code NOT BETWEEN 200 AND 299 OR code = 202, true) THEN
		RAISE EXCEPTION 'the answer is not a JSON object with a code that says that it is done' USING ERRCODE = '22023';
	END IF;
	PERFORM pawl.mark(tenant, scope, key, attempt, 'succeeded', code, body::text, NULL, replay);
END $$;
COMMENT ON FUNCTION pawl.succeed IS
	'Ends a claimed command with an answer, which every later claim and every other caller of the key gets until the time of replay is '
	'over. Else P4010.';

CREATE FUNCTION pawl.fail(
	scope text, key text, attempt int, message text, final boolean DEFAULT false,
	replay interval DEFAULT NULL, tenant text DEFAULT 'default') RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF coalesce(message, '') = '' THEN
		RAISE EXCEPTION 'the failure has no message' USING ERRCODE = '22023';
	ELSIF final IS NULL THEN
		RAISE EXCEPTION 'it is not said whether the failure is final' USING ERRCODE = '22023';
	ELSIF final THEN
		PERFORM pawl.mark(tenant, scope, key, attempt, 'failed_final', 409, format(
			'{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#guard_refused",'
			'"title":"the workflow refused the command for a reason of the business","status":409,"code":"guard_refused","detail":%s,"final":true}',
			to_json(message || '. This answer is final for this key; another try needs a new key.')), message, replay);
	ELSE
		PERFORM pawl.mark(tenant, scope, key, attempt, 'failed_retryable', NULL, NULL, message, replay);
	END IF;
END $$;
COMMENT ON FUNCTION pawl.fail IS
	'Gives a claimed command back for another attempt, or ends it for good: then every later claim gets P4030, and a caller of the engine '
	'guard_refused. Else P4011.';

-- A message that comes in is a command: its scope is "inbox:" and the consumer,
-- its key the sender's id, its fingerprint the hash of its body.
CREATE FUNCTION pawl.consume(
	consumer text, message text, hash bytea, keep interval DEFAULT '30 days', tenant text DEFAULT 'default') RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET search_path = pg_catalog, pg_temp AS $$
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
	PERFORM pawl.durable();
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
			to_json(consume.consumer), to_json(consume.message)), HINT = 'The sender has given two messages one id: an operator should look.';
	ELSIF c.phase = 'sql' THEN
		RAISE EXCEPTION 'the message is being worked on' USING ERRCODE = 'P4029', HINT = 'Ask again later.';
	ELSIF c.status = 'failed_final' THEN
		RAISE EXCEPTION 'what the message asked for has failed for good' USING ERRCODE = 'P4030', DETAIL = c.body,
			HINT = 'An operator should look.';
	END IF;
	RETURN false;
END $$;
COMMENT ON FUNCTION pawl.consume IS
	'True once per consumer and message: do what it asks in this transaction. False: that was done, here or by the engine. Else P4000, '
	'P4001, P4003, P4029, P4030, P4050.';

CREATE FUNCTION pawl.lock_key(resource text, tenant text) RETURNS bigint
	LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM pawl.check_text('tenant', tenant, 64, '22023');
	PERFORM pawl.check_text('resource', resource, 255, '22023');
	RETURN hashtextextended(format('pawl.lock %s:%s%s', octet_length(tenant), tenant, resource) COLLATE "C", 0);
END $$;
COMMENT ON FUNCTION pawl.lock_key IS 'Internal: the number of the advisory lock of a resource. Its text has the name of the schema.';

CREATE FUNCTION pawl.lock(resource text, tenant text DEFAULT 'default') RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT pg_advisory_xact_lock(pawl.lock_key(resource, tenant)) $$;
COMMENT ON FUNCTION pawl.lock IS 'Waits for the lock of a resource that no row stands for, and holds it until the transaction ends.';

CREATE FUNCTION pawl.try_lock(resource text, tenant text DEFAULT 'default') RETURNS boolean
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT pg_try_advisory_xact_lock(pawl.lock_key(resource, tenant)) $$;
COMMENT ON FUNCTION pawl.try_lock IS 'As lock, but says false instead of waiting.';

-- The rest lets a SQL caller make a transition, and meet the engine on one key.

CREATE FUNCTION pawl.canonical_number(given numeric) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	whole  text := split_part(trim_scale(abs(given))::text, '.', 1);
	rest   text := split_part(trim_scale(abs(given))::text, '.', 2);
	digits text := trim(BOTH '0' FROM whole || rest);
	k      int := length(digits);
	n      int := CASE WHEN whole <> '0' THEN length(whole) ELSE length(ltrim(rest, '0')) - length(rest) END; -- 0.digits * 10^n
	sign   text := CASE WHEN given < 0 THEN '-' ELSE '' END;
BEGIN
	IF (k > 15 AND (rest <> '' OR abs(given) > 9007199254740992)) OR n NOT BETWEEN -306 AND 308 THEN
		RAISE EXCEPTION 'a number has more digits than are kept everywhere' USING ERRCODE = '22003',
			DETAIL = given::text, HINT = 'Numbers have up to 15 digits, integers up to 2^53. Send it as a string.';
	END IF;
	RETURN sign || CASE
		WHEN k = 0 THEN '0'
		WHEN n BETWEEN k AND 21 THEN digits || repeat('0', n - k)
		WHEN n BETWEEN 1 AND 21 THEN left(digits, n) || '.' || substr(digits, n + 1)
		WHEN n BETWEEN -5 AND 0 THEN '0.' || repeat('0', -n) || digits
		ELSE left(digits, 1) || CASE WHEN k > 1 THEN '.' ELSE '' END || substr(digits, 2) || 'e' || CASE WHEN n > 0 THEN '+' ELSE '' END || n - 1
	END;
END $$;
COMMENT ON FUNCTION pawl.canonical_number IS
	'Internal: a number as RFC 8785 writes it. It refuses those that a double may not keep digit for digit.';

CREATE FUNCTION pawl.canonical(document jsonb) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	CASE jsonb_typeof(document)
	WHEN 'object' THEN
		-- In the order of UTF-16: what is past U+FFFF is two units, and before U+E000.
		RETURN '{' || coalesce((SELECT string_agg(to_json(m.key) || ':' || pawl.canonical(m.value), ',' ORDER BY ARRAY(
				SELECT ascii(u.c) + CASE WHEN ascii(u.c) BETWEEN 57344 AND 65535 THEN 1114112 ELSE 0 END
				FROM string_to_table(m.key, NULL) WITH ORDINALITY AS u(c, ord) ORDER BY u.ord))
			FROM jsonb_each(document) AS m), '') || '}';
	WHEN 'array' THEN
		RETURN '[' || coalesce((SELECT string_agg(pawl.canonical(e.value), ',' ORDER BY e.ord)
			FROM jsonb_array_elements(document) WITH ORDINALITY AS e(value, ord)), '') || ']';
	WHEN 'number' THEN RETURN pawl.canonical_number(document::numeric);
	ELSE RETURN document::text;
	END CASE;
END $$;
COMMENT ON FUNCTION pawl.canonical IS 'The document as RFC 8785 writes it: two documents that mean the same have the same text.';

CREATE FUNCTION pawl.fingerprint(
	workflow text, transition text, payload jsonb DEFAULT '{}', instance uuid DEFAULT NULL,
	actor text DEFAULT 'local', if_version bigint DEFAULT 0, reason text DEFAULT '') RETURNS bytea
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sha256(convert_to('{"actor":' || to_json(actor) || ',"if_version":' || if_version || ',"instance":'
		|| coalesce(to_json(instance)::text, 'null') || ',"payload":' || pawl.canonical(payload)
		|| CASE WHEN reason <> '' THEN ',"reason":' || to_json(reason) ELSE '' END
		|| ',"transition":' || to_json(transition) || ',"workflow":' || to_json(workflow) || '}', 'UTF8'))
$$;
COMMENT ON FUNCTION pawl.fingerprint IS
	'The hash by which the engine knows this request, so that its callers and those of SQL can use one key. The instance is NULL for a '
	'creation, the reason empty where the caller gives none.';

CREATE FUNCTION pawl.instance_id(workflow text, business_key text, tenant text DEFAULT 'default') RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT encode(set_byte(set_byte(h.id, 6, get_byte(h.id, 6) & 15 | 128), 8, get_byte(h.id, 8) & 63 | 128), 'hex')::uuid
	FROM (SELECT substr(sha256(convert_to(format('%s:%s%s:%s%s:%s', octet_length(tenant), tenant, octet_length(workflow), workflow,
		octet_length(business_key), business_key), 'UTF8')), 1, 16) AS id) AS h
$$;
COMMENT ON FUNCTION pawl.instance_id IS 'The id of the instance that has a business key, whether it is there or not.';

CREATE FUNCTION pawl.fields(VARIADIC list text[]) RETURNS bytea
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT string_agg(int4send(octet_length(f.bytes)) || f.bytes, '' ORDER BY f.ord)
	FROM (SELECT convert_to(coalesce(u.field, ''), 'UTF8') AS bytes, u.ord FROM unnest(list) WITH ORDINALITY AS u(field, ord)) AS f
$$;
COMMENT ON FUNCTION pawl.fields IS 'Internal: texts as they enter a hash, each after its length in bytes; NULL as "".';

CREATE FUNCTION pawl.rest(attributes jsonb, actors json, links json) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sha256(int4send(octet_length(a.fields)) || a.fields || pawl.fields(actors::text, (links -> 'effects')::text))
	FROM (SELECT coalesce(string_agg(pawl.fields(x.key, x.value), '' ORDER BY x.key COLLATE "C"), '') AS fields
		FROM jsonb_each_text(CASE jsonb_typeof(attributes) WHEN 'object' THEN attributes END) AS x) AS a -- the table refuses another
$$;
COMMENT ON FUNCTION pawl.rest IS 'Internal: the hash of an instance''s attributes, actors and effects.';

-- What ties an instance to others has no part in it: who is tied is refused.
CREATE FUNCTION pawl.standing(i pawl.instance) RETURNS bytea
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sha256(int4send(i.definition) || CASE WHEN i.open THEN '\x01' ELSE '\x00' END::bytea
		|| CASE WHEN i.paused THEN '\x01' ELSE '\x00' END::bytea || sha256(convert_to(i.data::text, 'UTF8'))
		|| pawl.rest(i.attributes, i.actors, i.links) || pawl.fields(i.business_key, i.state, '', '', '', ''))
$$;
COMMENT ON FUNCTION pawl.standing IS 'Internal: the hash of all of an instance that decides what can be done with it.';

-- The label is in two parts, so that it is the same in a schema of another name.
CREATE FUNCTION pawl.link(
	previous bytea, before bytea, after bytea, payload json, instance uuid, version bigint, moment timestamptz, emitted bytea,
	VARIADIC fields text[]) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT sha256(convert_to('pawl' || '.audit.3', 'UTF8') || previous || before || after || sha256(convert_to(payload::text, 'UTF8'))
		|| uuid_send(instance) || int8send(version) || int8send((extract(epoch FROM moment) * 1000000)::bigint)
		|| int4send(coalesce(octet_length(emitted), 0)) || coalesce(emitted, '') || pawl.fields(VARIADIC fields))
$$;
COMMENT ON FUNCTION pawl.link IS 'Internal: the hash of an audit row that follows the one with the previous hash.';

-- What the declaration says about a transition, to a caller that cannot run the
-- workflow's code. It refuses what only the engine can do.
CREATE FUNCTION pawl.declared(
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
		WHEN EXISTS (SELECT FROM jsonb_array_elements(spec -> 'timers') AS t WHERE t -> 'in' ?| ARRAY[before, after]) THEN 'timers'
	END;
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION '"%" has %, which only the engine can see to', declared.transition, missing
			USING ERRCODE = '0A000', HINT = 'Submit it to the engine.';
	END IF;
END $$;
COMMENT ON FUNCTION pawl.declared IS 'Internal: refuses a transition that a definition does not declare, or that SQL alone cannot make.';

CREATE FUNCTION pawl.transition(
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

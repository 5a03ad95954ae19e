-- Callers that speak only SQL, and do not say how long an answer is replayed,
-- mean what the workflow says.

CREATE OR REPLACE FUNCTION pawl.mark(
	tenant text, scope text, key text, attempt int, status text, code int, body text, failure text, replay interval,
	instance uuid DEFAULT NULL, version bigint DEFAULT NULL) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
	moment timestamptz := clock_timestamp();
	ends   boolean := mark.status <> 'failed_retryable';
	until  timestamptz;
BEGIN
	IF mark.replay <= interval '0' THEN
		RAISE EXCEPTION 'the time of replay is already over' USING ERRCODE = '22023';
	END IF;
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

-- The functions that pass it on are as they were but for the default, which is
-- now NULL. (0008 does the same to pawl.transition.)
CREATE OR REPLACE FUNCTION pawl.succeed(
	scope text, key text, attempt int, body json DEFAULT '{}', code int DEFAULT 200,
	replay interval DEFAULT NULL, tenant text DEFAULT 'default') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF coalesce(json_typeof(body) <> 'object' OR code NOT BETWEEN 200 AND 299 OR code = 202, true) THEN
		RAISE EXCEPTION 'the answer is not a JSON object with a code that says that it is done' USING ERRCODE = '22023';
	END IF;
	PERFORM pawl.mark(tenant, scope, key, attempt, 'succeeded', code, body::text, NULL, replay);
END $$;

CREATE OR REPLACE FUNCTION pawl.fail(
	scope text, key text, attempt int, message text, final boolean DEFAULT false,
	replay interval DEFAULT NULL, tenant text DEFAULT 'default') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF coalesce(message, '') = '' THEN
		RAISE EXCEPTION 'the failure has no message' USING ERRCODE = '22023';
	ELSIF final THEN
		PERFORM pawl.mark(tenant, scope, key, attempt, 'failed_final', 409, format(
			'{"type":"https://github.com/pawlhq/pawl/blob/main/docs/errors.md#guard_refused",'
			'"title":"the workflow refused the command for a reason of the business","status":409,"code":"guard_refused","detail":%s,"final":true}',
			to_json(message || '. This answer is final for this key; another try needs a new key.')), message, replay);
	ELSE
		PERFORM pawl.mark(tenant, scope, key, attempt, 'failed_retryable', NULL, NULL, message, replay);
	END IF;
END $$;

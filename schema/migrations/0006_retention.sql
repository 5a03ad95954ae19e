-- Retention: what becomes of keys after their answers expire.
-- docs/decisions/0010-retention.md says why it is so.

CREATE TABLE pawl.leadership (
	name         text COLLATE "C" PRIMARY KEY CHECK (octet_length(name) BETWEEN 1 AND 64),
	token        bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
	claimed_by   text COLLATE "C",
	claimed_at   timestamptz,
	locked_until timestamptz,
	CONSTRAINT leadership_lease CHECK ((claimed_by IS NULL) = (locked_until IS NULL) AND (claimed_by IS NULL) = (claimed_at IS NULL))
) WITH (fillfactor = 10);
COMMENT ON TABLE pawl.leadership IS 'What one node does for all: who it is.';
COMMENT ON COLUMN pawl.leadership.name IS 'What it does.';
COMMENT ON COLUMN pawl.leadership.token IS 'The fencing token: counts the claims. What the node does names it.';
COMMENT ON COLUMN pawl.leadership.claimed_by IS 'The node; NULL: none.';
COMMENT ON COLUMN pawl.leadership.claimed_at IS 'Since when.';
COMMENT ON COLUMN pawl.leadership.locked_until IS 'Until when its lease lasts unless it is renewed. After it any node takes over.';
INSERT INTO pawl.leadership (name) VALUES ('retention');

-- It takes no lock on a row that it waits for, and so needs no order of them.
-- Without jit = off the plans, whose other ways are made dear, would be compiled,
-- which takes longer than all else. To plan anew each time would take longer than
-- to look where nothing is due.
CREATE FUNCTION pawl.purge(
	batch int DEFAULT 1000, tombstone interval DEFAULT '30 days', moment timestamptz DEFAULT NULL, replay interval DEFAULT '24 hours',
	decided text[] DEFAULT NULL, after json DEFAULT NULL, since timestamptz DEFAULT '-infinity',
	OUT expired bigint, OUT forgotten bigint, OUT abandoned bigint, OUT archived bigint, OUT passed json)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET enable_incremental_sort = off
	SET plan_cache_mode = force_generic_plan SET jit = off SET search_path = pg_catalog, pg_temp AS $$
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
	purge.moment := coalesce(purge.moment, clock_timestamp());
	IF coalesce(batch < 1 OR tombstone < interval '0' OR replay <= interval '0' OR NOT isfinite(purge.moment), true) THEN
		RAISE EXCEPTION 'the batch or the time of replay is not positive, the time of the tombstones is negative, or the moment is no time'
			USING ERRCODE = '22023';
	END IF;
	PERFORM pawl.durable(); -- what it gives up has an answer then
	expired := 0; forgotten := 0; abandoned := 0; archived := 0;
	due := ARRAY(SELECT c.ctid FROM pawl.command AS c WHERE c.expires_at >= purge.since AND c.expires_at <= purge.moment AND c.phase IS NULL
		ORDER BY c.expires_at LIMIT batch FOR UPDATE SKIP LOCKED);
	IF cardinality(due) > 0 THEN
		FOR month IN SELECT DISTINCT date_trunc('month', c.expires_at, 'UTC') FROM pawl.command AS c
			JOIN pawl.horizon AS h ON h.workflow = c.workflow
				WHERE c.ctid = ANY (due) AND c.status <> 'expired' AND h.history LOOP
			PERFORM pawl.make_partition('command_history', month, waits => false);
		END LOOP;
		WITH past AS MATERIALIZED (
			SELECT c.ctid AS place, c.*, CASE WHEN h.history THEN pawl.answer(c) END AS said, c.status <> 'expired' AS answer, c.status <> 'expired' AND coalesce(h.history, false) AS wanted,
				CASE WHEN c.status = 'expired' THEN c.expires_at WHEN c.forget_at IS NOT NULL THEN nullif(c.forget_at, 'infinity')
					WHEN h.workflow IS NULL THEN c.expires_at + purge.tombstone ELSE c.expires_at + h.tombstone END AS forget
			FROM pawl.command AS c LEFT JOIN pawl.horizon AS h ON h.workflow = c.workflow WHERE c.ctid = ANY (due)),
		kept AS (
			INSERT INTO pawl.command_history (tenant, scope, key, workflow, transition, instance, version, actor, status, code, body,
				failures, failure, created_at, finished_at, expired_at)
			SELECT p.tenant, p.scope, p.key, p.workflow, p.transition, p.instance, p.version, p.actor, p.status, p.code, p.said,
				p.failures, p.failure, p.created_at, p.finished_at, p.expires_at FROM past AS p WHERE p.wanted),
		gone AS (
			DELETE FROM pawl.command AS c WHERE c.ctid = ANY (ARRAY(SELECT p.place FROM past AS p WHERE p.forget <= purge.moment))),
		turned AS (
			UPDATE pawl.command AS c SET status = 'expired', code = NULL, state = NULL, body = NULL, expires_at = p.forget, forget_at = NULL, attempt = NULL,
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
					> (coalesce((purge.after ->> 0)::timestamptz, '-infinity'), coalesce(purge.after ->> 1, ''),
						coalesce(purge.after ->> 2, ''), coalesce(purge.after ->> 3, ''))
				ORDER BY c.run_at, c.tenant, c.scope, c.key LIMIT batch) AS l;
		END IF;
		WITH late AS MATERIALIZED (
			SELECT d.ctid AS place, k.replay, (d.request ->> 'tombstone_ns')::bigint AS tombstone FROM pawl.command AS d
			LEFT JOIN pawl.horizon AS h ON h.workflow = d.workflow
			CROSS JOIN LATERAL (SELECT coalesce((d.request ->> 'replay_ns')::bigint / 1000 * interval '1 microsecond',
				h.replay, purge.replay) AS replay) AS k
			WHERE d.ctid = ANY (planned) AND d.run_at <= purge.moment - k.replay
				AND NOT EXISTS (SELECT FROM pawl.paused AS p WHERE p.tenant = d.tenant AND p.workflow = d.workflow)
				AND NOT coalesce((SELECT i.paused FROM pawl.instance AS i -- not a join: one by one
					WHERE i.tenant = d.tenant AND i.id = d.instance ORDER BY i.bucket DESC LIMIT 1), false)),
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
		UPDATE pawl.command AS c SET status = 'failed_final', code = 408, body = problem,
			failure = coalesce(c.failure, 'nobody went on with it in time'),
			phase = NULL, request = NULL, run_at = NULL, paused = NULL, given_up_at = NULL, stuck = NULL, revision = c.revision + 1, updated_at = purge.moment,
			finished_at = purge.moment, expires_at = purge.moment + s.replay, forget_at = CASE s.tombstone WHEN 9223372036854775807 THEN 'infinity'
				ELSE purge.moment + s.replay + s.tombstone / 1000 * interval '1 microsecond' END
		FROM still AS s WHERE c.ctid = s.place;
		GET DIAGNOSTICS abandoned = ROW_COUNT;
	END IF;
END $$;
COMMENT ON FUNCTION pawl.purge IS
	'Ends what is past its horizon, at most batch of each, the oldest first, none that somebody has locked: answers become tombstones, '
	'tombstones are forgotten, and what nobody goes on with fails. It is for SQL callers and the engine alike. Zeros: there was nothing to '
	'do. Of the scheduled commands one call looks at batch, those that come after a place; passed is the place for the next, NULL at the '
	'end. since leaves out what was due before.';

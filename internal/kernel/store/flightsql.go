package store

// PollSQL finds candidates over all tenants without a lock: expired leases, then scheduled commands and work that are due. Scheduled
// commands are limited separately, so that they never wait behind a backlog of work. The first four columns are always present: the
// database's clock, when something is due next, the paused workflows, and, if requested, the ended pauses with deferred commands.
// Parameters: those of [PollRequest.Params].
//
// Rows before the given times are not read, and neither are dead index entries that stay while an old snapshot is open. See
// docs/decisions/0006.
//
// Work is read in the order in which it is due, for each activity separately, so that a full activity blocks no other. The next tenants of
// the round-robin come first: one command of each, or a row without one if nothing of the tenant can be taken. The walk goes from activity
// to activity of a tenant, then to the next tenant, with one index probe each. Scheduled commands have no activity: a tenant's first is
// found by one probe.
//
// A paused scheduled command is found once, with its pause, to be deferred, unless its cancellation was requested.
//
// The index must be read in order until there is enough, whatever the statistics say; otherwise the planner may read and sort all rows,
// including dead ones. The planner does not see the value of a subquery nor the origin of a column behind OFFSET 0, and does not estimate
// bounds that contain a row. A tenant's work is the next entry in the order of its index: with equality another index would have the same
// order, and a range of one tenant is a small part of the primary key.
var PollSQL = `
SELECT clock_timestamp(), least(
		(SELECT run_at FROM {pawl}.command WHERE ` + later + ` AND run_at > (SELECT $14::timestamptz) ORDER BY run_at LIMIT 1),
		(SELECT min(soon.run_at) FROM unnest($9::text[], $10::text[]) AS r(workflow, transition) CROSS JOIN LATERAL (
			SELECT w.run_at FROM {pawl}.command AS w WHERE ` + waits + ` AND w.workflow = r.workflow AND w.transition = r.transition
				AND w.run_at > (SELECT $14::timestamptz)
			ORDER BY w.workflow, w.transition, w.run_at LIMIT 1) AS soon)),
	(SELECT coalesce(json_agg(json_build_array(tenant, workflow) ORDER BY tenant, workflow), '[]') FROM {pawl}.paused),
	CASE WHEN $16::boolean THEN (` + endedPauses + `) END,
	coalesce(found.kind, ''), coalesce(found.tenant, ''), coalesce(found.scope, ''), coalesce(found.key, ''), coalesce(found.attempt, 0),
	coalesce(found.phase, ''), coalesce(found.workflow, ''), coalesce(found.transition, ''), coalesce(found.since, 'epoch'),
	coalesce(found.pause, '')
FROM (VALUES (1)) AS one LEFT JOIN (
	(SELECT '` + Lapsed + `' AS kind, tenant, scope, key, attempt, phase, workflow, transition, locked_until AS since, NULL AS pause FROM (
			SELECT *, ` + known + ` AS known FROM {pawl}.command
			WHERE locked_until < (SELECT clock_timestamp()) AND (locked_until, scope) > ((SELECT $13::timestamptz), '')
			ORDER BY locked_until OFFSET 0) AS lapsed
		WHERE known LIMIT $2::bigint + $3::bigint)
	UNION ALL
	(SELECT kind, tenant, scope, key, attempt, phase, workflow, transition, run_at,
			CASE WHEN cancelled_by IS NOT NULL THEN NULL
				WHEN EXISTS (SELECT FROM {pawl}.paused AS p WHERE p.tenant = due.tenant AND p.workflow = due.workflow)
				THEN '` + PausedWorkflow + `' || workflow
				WHEN (` + newest("i.paused", "due.tenant", "due.instance") + `) THEN '` + PausedInstance + `' || instance END
		FROM (
			(WITH RECURSIVE each AS (
					(SELECT tenant, 1 AS n FROM {pawl}.command
						WHERE ` + laterTurns + ` AND tenant > (SELECT $17::text) ORDER BY ` + laterTurn + ` LIMIT 1)
					UNION ALL
					(SELECT next.tenant, each.n + 1 FROM each CROSS JOIN LATERAL (SELECT tenant FROM {pawl}.command
							WHERE ` + laterTurns + ` AND tenant > each.tenant ORDER BY ` + laterTurn + ` LIMIT 1) AS next
						WHERE each.n < $18::bigint))
				SELECT '` + LaterTurn + `' AS kind, each.tenant, one.scope, one.key, one.attempt, one.phase, one.workflow, one.transition,
					one.run_at, one.instance, one.cancelled_by
				FROM each LEFT JOIN LATERAL (SELECT * FROM (SELECT *, ` + known + ` AS known FROM {pawl}.command
						WHERE ` + laterOfTenants + ` AND (tenant, run_at) >= (each.tenant, (SELECT $5::timestamptz))
							AND (tenant, run_at) <= (each.tenant, (SELECT $1::timestamptz))
						ORDER BY ` + laterTurn + ` OFFSET 0) AS due
					WHERE known LIMIT 1) AS one ON true
				LIMIT $18::bigint)
			UNION ALL
			(SELECT '` + Later + `', tenant, scope, key, attempt, phase, workflow, transition, run_at, instance, cancelled_by
				FROM (SELECT *, ` + known + ` AS known FROM {pawl}.command
					WHERE ` + later + ` AND run_at <= (SELECT $1::timestamptz) AND (run_at, scope) > ((SELECT $5::timestamptz), '')
					ORDER BY run_at OFFSET 0) AS due
				WHERE known LIMIT $2::bigint)) AS due)
	UNION ALL
	(WITH RECURSIVE kinds AS (
			(SELECT tenant, workflow, transition, 1 AS n FROM {pawl}.command
				WHERE ` + turns + ` AND tenant > (SELECT $7::text) ORDER BY ` + turn + ` LIMIT 1)
			UNION ALL
			(SELECT next.*, kinds.n + CASE WHEN next.tenant = kinds.tenant THEN 0 ELSE 1 END
				FROM kinds CROSS JOIN LATERAL (SELECT tenant, workflow, transition FROM {pawl}.command
					WHERE ` + turns + ` AND (tenant, workflow, transition) > (kinds.tenant, kinds.workflow, kinds.transition)
					ORDER BY ` + turn + ` LIMIT 1) AS next
				WHERE next.tenant = kinds.tenant OR kinds.n < $8::bigint))
		SELECT DISTINCT ON (kinds.n) '` + Turn + `', kinds.tenant, first.scope, first.key, first.attempt, first.phase, first.workflow,
			first.transition, first.run_at, NULL
		FROM kinds LEFT JOIN LATERAL (SELECT * FROM (SELECT *, ` + known + ` AS known, run_at <= (SELECT $1::timestamptz)
						AND (tenant, workflow, transition) = (kinds.tenant, kinds.workflow, kinds.transition) AS due
					FROM {pawl}.command
					WHERE ` + turns + ` AND (tenant, workflow, transition) >= (kinds.tenant, kinds.workflow, kinds.transition)
					ORDER BY ` + turn + ` OFFSET 0) AS next
				WHERE kinds.workflow = ANY ($6::text[]) AND kinds.workflow || ' ' || kinds.transition <> ALL ($4::text[])
					AND (known OR NOT due)
				LIMIT 1) AS first ON first.due
		ORDER BY kinds.n, first.run_at LIMIT $8::bigint)
	UNION ALL
	(SELECT '` + Work + `', one.tenant, one.scope, one.key, one.attempt, one.phase, one.workflow, one.transition, one.run_at, NULL
		FROM unnest($9::text[], $10::text[], $11::timestamptz[], $12::bigint[]) AS r(workflow, transition, since, room) CROSS JOIN LATERAL (
			SELECT * FROM (SELECT *, ` + known + ` AS known FROM {pawl}.command AS w
				WHERE ` + waits + ` AND w.workflow = r.workflow AND w.transition = r.transition
					AND w.run_at <= (SELECT $1::timestamptz) AND (w.run_at, w.scope) > (r.since, '')
				ORDER BY w.workflow, w.transition, w.run_at OFFSET 0) AS due
			WHERE known LIMIT least(r.room, $3::bigint)) AS one
		ORDER BY one.run_at LIMIT $3::bigint)
) AS found ON true`

// known reports whether this node knows the workflow of a command and, if the row has it, the version of its instance. Unknown commands are
// skipped, because a newer build may have many.
const known = `coalesce(workflow || ' ' || definition, workflow) = ANY ($6::text[])`

// later finds scheduled commands that are not deferred by a pause, by the index command_due.
const later = `phase = 'scheduled' AND run_at IS NOT NULL AND paused IS NULL`

// laterOfTenants is later by the index command_due_turn. The condition of each index does not imply the other's, so that the planner has no
// choice, even with the statistics of an empty table.
const laterOfTenants = `phase BETWEEN 'scheduled' AND 'scheduled' AND run_at IS NOT NULL AND paused IS NULL AND tenant >= ''`

// waits finds work that waits for its time or for a worker, by the index command_work.
const waits = `run_at IS NOT NULL AND phase <> 'scheduled'`

// turns is waits by the index command_turn, from PollSQL's oldest due time. It repeats the condition of waits, for which there are
// statistics.
const turns = waits + ` AND phase || '' <> 'scheduled' AND run_at >= (SELECT $15::timestamptz)`

// turn is the order of command_turn.
const turn = `tenant, workflow, transition, run_at`

// laterTurns is laterOfTenants from PollSQL's oldest due time.
const laterTurns = laterOfTenants + ` AND run_at >= (SELECT $5::timestamptz)`

// laterTurn is the order of command_due_turn.
const laterTurn = `tenant, run_at`

// ClaimSQL leases the candidates that are unchanged since the poll and not locked. It finds each by key with one probe and updates it in
// place. An expired lease counts as a failure. The instance is read as an ordered range, which only its primary key provides: with
// equality, the plan for an empty table may use another index. Parameters: tenant, node, length of a lease in microseconds, now, scopes,
// keys, attempts seen.
var ClaimSQL = `
WITH claimed AS (
	UPDATE {pawl}.command AS c SET status = 'processing', attempt = c.attempt + 1, revision = c.revision + 1,
		failures = c.failures + CASE WHEN u.taken IS NULL THEN 0 ELSE 1 END,
		failure = CASE WHEN u.taken IS NULL THEN c.failure ELSE 'the worker was lost: the lease of ' || u.taken || ' ran out' END,
		unsure = CASE WHEN u.taken IS NULL THEN c.unsure ELSE true END,
		claimed_by = $2, claimed_at = clock_timestamp(), locked_until = clock_timestamp() + $3::bigint * interval '1 microsecond',
		run_at = NULL, updated_at = $4
	FROM (SELECT found.* FROM unnest($5::text[], $6::text[], $7::int[]) AS u(scope, key, attempt) CROSS JOIN LATERAL (
		SELECT x.ctid AS row, x.run_at AS due, CASE WHEN x.status = 'processing' THEN x.claimed_by END AS taken FROM {pawl}.command x
		WHERE x.tenant = $1 AND x.scope = u.scope AND x.key = u.key AND x.attempt = u.attempt
			AND (x.run_at <= $4 OR x.locked_until < clock_timestamp()) AND x.paused IS NULL
		LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
	WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1
	RETURNING c.scope, c.key, c.fingerprint, c.phase, c.workflow, c.transition, c.instance, c.actor, c.request, c.attempt, c.failures,
		c.cancelled_by, c.created_at, u.taken, c.unsure, u.due)
SELECT c.scope, c.key, c.fingerprint, c.phase, c.workflow, c.transition, c.instance, c.actor, c.request::text, c.attempt, c.failures,
	coalesce(c.cancelled_by, ''), c.created_at, coalesce(c.taken, ''), c.unsure, coalesce(i.definition, 0), i.data::text,
	c.due, coalesce(i.paused, false) OR EXISTS (SELECT FROM {pawl}.paused p WHERE p.tenant = $1 AND p.workflow = c.workflow)
FROM claimed AS c LEFT JOIN LATERAL (
	` + newest("i.definition, i.data, i.paused", "$1", "c.instance") + `) AS i ON true`

// mine finds the rows of the source u that this node has leased.
const mine = `{pawl}.command x
	WHERE x.tenant = $1 AND x.scope = u.scope AND x.key = u.key AND x.attempt = u.attempt AND x.claimed_by = $2
		AND x.status = 'processing' LIMIT 1`

// KeepSQL updates leases that this node holds, except locked rows. Without a status a lease is extended; with one the command is released,
// for a later time or for an operator. If its cancellation was requested since the claim, it is due at once. It returns the indexes of the
// updated rows, and the actors who requested cancellations. Parameters: tenant, node, scopes, keys, attempts, now, length of a lease in
// microseconds, then per command: progress, status, due time, failures to count, failure message, reason for an operator, whether the claim
// saw the cancellation, whether the effect is unknown (false: none, NULL: no attempt), whether it is released without an attempt, when it
// was due before its claim, new request.
var KeepSQL = `
UPDATE {pawl}.command AS c SET status = coalesce(u.status, c.status),
	locked_until = CASE WHEN u.status IS NULL THEN clock_timestamp() + $7::bigint * interval '1 microsecond' END,
	run_at = CASE WHEN u.status IS NOT NULL AND u.stops THEN $6 ELSE u.run_at END,
	stuck = CASE WHEN u.stops THEN NULL ELSE u.stuck END,
	parent = CASE WHEN u.stuck IS NULL OR u.stops THEN c.parent ELSE (SELECT (i.links -> 'parent' ->> 'instance')::uuid
		FROM (` + newest("i.links", "$1", "c.instance") + `) AS i) END,
	progress = coalesce(u.progress::json, c.progress), request = coalesce(u.request::json, c.request),
	failures = c.failures + u.failed, failure = coalesce(u.failure, c.failure),
	unsure = CASE WHEN u.unsure THEN true WHEN NOT u.unsure AND c.failures = 0 THEN coalesce(c.unsure, false) ELSE c.unsure END,
	revision = c.revision + 1, updated_at = $6,
	waits_since = CASE WHEN u.status IS NULL OR u.untried THEN coalesce(c.waits_since, CASE WHEN u.untried THEN coalesce(u.due, $6) END) END
FROM (SELECT found.row, found.stops, u.*
	FROM unnest($3::text[], $4::text[], $5::int[], $8::text[], $9::text[], $10::timestamptz[], $11::int[], $12::text[], $13::text[],
		$14::boolean[], $15::boolean[], $16::boolean[], $17::timestamptz[], $18::text[]) WITH ORDINALITY
		AS u(scope, key, attempt, progress, status, run_at, failed, failure, stuck, knew, unsure, untried, due, request, ord)
	CROSS JOIN LATERAL (SELECT x.ctid AS row, x.cancelled_by IS NOT NULL AND NOT u.knew AND x.phase <> 'undoing' AS stops FROM ` + mine + `
		FOR NO KEY UPDATE SKIP LOCKED) AS found) AS u
WHERE c.ctid = u.row AND c.tenant IS NOT DISTINCT FROM $1
RETURNING u.ord, coalesce(c.cancelled_by, '')`

// HeldSQL returns the indexes of the leases that this node holds. Parameters: tenant, node, scopes, keys, attempts, creation times of the
// commands (NULL: any).
const HeldSQL = `
SELECT u.ord FROM unnest($3::text[], $4::text[], $5::int[], $6::timestamptz[]) WITH ORDINALITY AS u(scope, key, attempt, created, ord)
CROSS JOIN LATERAL (SELECT x.created_at FROM ` + mine + `) AS found
WHERE u.created IS NULL OR found.created_at = u.created`

// CancelSQL requests that a command stops, unless a stop is already requested. A waiting command becomes due at once. It returns no row for
// an unknown command, otherwise its phase before, if it is in flight. Parameters: tenant, scope, key, actor, now.
const CancelSQL = `
WITH asked AS (
	UPDATE {pawl}.command SET cancelled_by = $4, revision = revision + 1, stuck = NULL, paused = NULL, updated_at = $5,
		run_at = CASE WHEN status = 'processing' THEN NULL ELSE $5::timestamptz END
	WHERE tenant = $1 AND scope = $2 AND key = $3 AND phase IN ('scheduled', 'working') AND cancelled_by IS NULL
	RETURNING 1)
SELECT coalesce(c.phase, ''), EXISTS (SELECT FROM asked) FROM {pawl}.command AS c WHERE c.tenant = $1 AND c.scope = $2 AND c.key = $3`

-- Commands in flight: work outside of the database, scheduled commands, timers.
-- Their rows are of the same table, and leave its partial indexes when they are
-- finished, so that each stays as small as the work that it serves. The columns
-- are NULL in the row of a command that is done at once, and cost it nothing.

ALTER TABLE pawl.command
	ADD COLUMN phase        text COLLATE "C" CHECK (phase IN ('scheduled', 'working', 'undoing')),
	ADD COLUMN attempt      int CHECK (attempt >= 0),
	ADD COLUMN failures     int CHECK (failures >= 0),
	ADD COLUMN revision     int CHECK (revision >= 0),
	ADD COLUMN claimed_by   text COLLATE "C",
	ADD COLUMN claimed_at   timestamptz,
	ADD COLUMN locked_until timestamptz,
	ADD COLUMN run_at       timestamptz,
	ADD COLUMN request      json,
	ADD COLUMN progress     json,
	ADD COLUMN failure      text,
	ADD COLUMN stuck        text COLLATE "C",
	ADD COLUMN cancelled_by text,
	ADD COLUMN unsure       boolean,
	ADD COLUMN updated_at   timestamptz,
	DROP CONSTRAINT command_check2, -- a version only of what succeeded: an accepted command has one too
	ADD CONSTRAINT command_phase CHECK ((status IN ('pending', 'processing', 'failed_retryable')) = (phase IS NOT NULL)),
	ADD CONSTRAINT command_in_flight CHECK (phase IS NULL
		OR (attempt IS NOT NULL AND failures IS NOT NULL AND revision IS NOT NULL AND request IS NOT NULL AND updated_at IS NOT NULL)),
	ADD CONSTRAINT command_lease CHECK ((status = 'processing') = (locked_until IS NOT NULL)
		AND (status <> 'processing' OR (claimed_by IS NOT NULL AND claimed_at IS NOT NULL))),
	ADD CONSTRAINT command_due CHECK ((status IN ('pending', 'failed_retryable') AND stuck IS NULL) = (run_at IS NOT NULL)),
	ADD CONSTRAINT command_stuck CHECK (stuck IS NULL OR status = 'failed_retryable');

COMMENT ON COLUMN pawl.command.phase IS 'What a command in flight waits for: its time, the outcome of its activity, or that of an undo. NULL when it is finished.';
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
COMMENT ON COLUMN pawl.command.stuck IS 'Why it waits for a person; NULL when it does not.';
COMMENT ON COLUMN pawl.command.cancelled_by IS 'Who asked it to stop.';
COMMENT ON COLUMN pawl.command.unsure IS 'Whether a worker was lost in the middle of it, and nobody has found out since what it has done.';
COMMENT ON COLUMN pawl.command.updated_at IS 'When it changed last, while in flight.';

-- What is due, over all tenants.
CREATE INDEX command_due ON pawl.command (run_at) WHERE run_at IS NOT NULL;
-- Whose lease has run out.
CREATE INDEX command_leased ON pawl.command (locked_until) WHERE locked_until IS NOT NULL;
-- Whatever waits in a scope to be decided: the timers of a state that is left.
CREATE INDEX command_scheduled ON pawl.command (tenant, scope) WHERE phase = 'scheduled';
-- What waits for a person.
CREATE INDEX command_stuck ON pawl.command (tenant, updated_at, scope, key) WHERE stuck IS NOT NULL;

ALTER TABLE pawl.instance
	ADD COLUMN paused boolean NOT NULL DEFAULT false,
	ADD COLUMN links  json;
COMMENT ON COLUMN pawl.instance.paused IS 'Nothing new is begun on it until it is resumed.';
COMMENT ON COLUMN pawl.instance.links IS 'What ties it to others: the command in flight, effects that a later failure undoes, the parent.';

-- As long as it knows nothing of the table, the planner may look for an instance
-- whose id it has in this index, where it would read all of a tenant's entries
-- for each. No column of the table is NULL; the condition says that the index is
-- only for those who ask for a workflow.
DROP INDEX pawl.instance_list;
CREATE INDEX instance_list ON pawl.instance (tenant, workflow, state, id) WHERE workflow IS NOT NULL;

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

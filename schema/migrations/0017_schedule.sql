-- needs: 8

CREATE TABLE pawl.schedule (
	tenant      text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	name        text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 200),
	instance    uuid NOT NULL,
	revision    bigint NOT NULL CHECK (revision > 0),
	plan        json NOT NULL,
	paused      boolean NOT NULL,
	last_at     timestamptz NOT NULL,
	held_at     timestamptz,
	next_at     timestamptz,
	due_at      timestamptz,
	claims      bigint NOT NULL DEFAULT 0,
	extra       json,
	running     uuid,
	running_key text COLLATE "C",
	recent      json,
	PRIMARY KEY (tenant, name),
	CHECK ((running IS NULL) = (running_key IS NULL))
) WITH (fillfactor = 70);
COMMENT ON TABLE pawl.schedule IS 'The progress of the schedules that are not deleted. What they do is decided by their instances, of the workflow "schedule".';
COMMENT ON COLUMN pawl.schedule.tenant IS 'The tenant of the schedule and of its runs.';
COMMENT ON COLUMN pawl.schedule.name IS 'The name, which is the business key of the instance.';
COMMENT ON COLUMN pawl.schedule.instance IS 'The instance.';
COMMENT ON COLUMN pawl.schedule.revision IS 'The version of the instance after the newest command on it.';
COMMENT ON COLUMN pawl.schedule.plan IS 'The plan as of that version.';
COMMENT ON COLUMN pawl.schedule.paused IS 'Whether runs are only submitted by trigger and backfill.';
COMMENT ON COLUMN pawl.schedule.last_at IS 'The nominal time of the newest run that was submitted or left out.';
COMMENT ON COLUMN pawl.schedule.held_at IS 'The newest time at which runs waited for the end of the run before. NULL: none wait.';
COMMENT ON COLUMN pawl.schedule.next_at IS 'The nominal time of the next run. NULL: there is none.';
COMMENT ON COLUMN pawl.schedule.due_at IS 'When a node processes the schedule next. While a node does, the time at which another may take over. NULL: never.';
COMMENT ON COLUMN pawl.schedule.claims IS 'How often nodes have taken the schedule. A node that was overtaken cannot write.';
COMMENT ON COLUMN pawl.schedule.extra IS 'Runs that trigger and backfill have requested: key and nominal time of each.';
COMMENT ON COLUMN pawl.schedule.running IS 'The instance of the newest run.';
COMMENT ON COLUMN pawl.schedule.running_key IS 'The key of its command.';
COMMENT ON COLUMN pawl.schedule.recent IS 'The newest runs and what was left out, newest first.';

-- For the poll.
CREATE INDEX schedule_due ON pawl.schedule (due_at) WHERE due_at IS NOT NULL;

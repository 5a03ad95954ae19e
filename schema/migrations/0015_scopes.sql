-- needs: 8

CREATE TABLE pawl.scope_day (
	tenant     text COLLATE "C" NOT NULL CHECK (octet_length(tenant) <= 64),
	scope      text COLLATE "C" NOT NULL CHECK (octet_length(scope) BETWEEN 1 AND 255),
	named      boolean NOT NULL,
	day        date NOT NULL,
	fresh      bigint NOT NULL,
	replayed   bigint NOT NULL,
	active     bigint NOT NULL,
	mismatched bigint NOT NULL,
	expired    bigint NOT NULL,
	PRIMARY KEY (tenant, scope, named, day)
) WITH (fillfactor = 70);
COMMENT ON TABLE pawl.scope_day IS
	'Answers of attempts by scope and day. Nodes add to it once a minute and when they stop. Rows are kept for 30 days.';
COMMENT ON COLUMN pawl.scope_day.tenant IS 'The tenant of the attempts; empty for scopes that are counted together.';
COMMENT ON COLUMN pawl.scope_day.scope IS
	'The workflow and the transition of a default scope, the consumer of messages, or the scope that a caller named. "other" counts '
	'further named scopes together.';
COMMENT ON COLUMN pawl.scope_day.named IS 'Whether a caller named the scope.';
COMMENT ON COLUMN pawl.scope_day.day IS 'The day in UTC, by the clock of the database, on which a node wrote the counts.';
COMMENT ON COLUMN pawl.scope_day.fresh IS 'First attempts.';
COMMENT ON COLUMN pawl.scope_day.replayed IS 'Attempts that got the stored answer.';
COMMENT ON COLUMN pawl.scope_day.active IS 'Attempts while the command was in flight.';
COMMENT ON COLUMN pawl.scope_day.mismatched IS 'Attempts with the key of another request.';
COMMENT ON COLUMN pawl.scope_day.expired IS 'Attempts whose answer was gone.';
CREATE INDEX scope_day_day ON pawl.scope_day (day);

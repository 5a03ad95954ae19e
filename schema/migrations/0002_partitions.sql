-- What comes and goes by week or month: who makes and drops its partitions.
-- docs/decisions/0010-retention.md says why it is so.

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
COMMENT ON TABLE pawl.command_history IS
	'Commands whose answers have expired, by the month in which they did, of the workflows that want it.';
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
-- The lock is held until the transaction ends. Who holds locks on rows must not wait
-- for it: its holder may want one of those.
-- Its bounds are written as text, which must not depend on the session's settings.
CREATE FUNCTION pawl.make_partition(parent text, moment timestamptz, waits boolean DEFAULT true) RETURNS boolean
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
	BEGIN
		EXECUTE format('LOCK TABLE pawl.%I IN SHARE UPDATE EXCLUSIVE MODE', parent) || CASE WHEN waits THEN '' ELSE ' NOWAIT' END;
	EXCEPTION WHEN lock_not_available THEN
		RAISE EXCEPTION 'another transaction is making a partition of "%", or removing one', parent USING ERRCODE = '55P03',
			HINT = 'Begin another transaction, and try again.';
	END;
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
		EXECUTE format('COMMENT ON TABLE pawl.%I IS %L', name,
			'The ' || unit || ' from ' || to_char(begins, 'YYYY-MM-DD') || ' of ' || parent || '.');
	END IF;
	EXECUTE format('ALTER TABLE pawl.%I ATTACH PARTITION pawl.%I FOR VALUES FROM (%L) TO (%L)', parent, name,
		begins AT TIME ZONE 'UTC', (begins + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
	RETURN true;
END $$;
COMMENT ON FUNCTION pawl.make_partition IS
	'Makes the partition of outbox or command_history that a moment is in, by the right of the tables'' owner; for others of up to a year '
	'from now. False: it is there. Who holds locks on rows must not wait for others who make one: 55P03.';
REVOKE EXECUTE ON FUNCTION pawl.make_partition FROM PUBLIC;

CREATE FUNCTION pawl.make_partitions(since timestamptz DEFAULT clock_timestamp(), until timestamptz DEFAULT NULL) RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE made int;
BEGIN
	until := coalesce(until, since + interval '14 days');
	IF coalesce(until NOT BETWEEN since AND since + interval '1 year', true) THEN
		RAISE EXCEPTION 'the time is missing, or not one of up to a year' USING ERRCODE = '22023';
	END IF;
	SELECT count(*) FILTER (WHERE pawl.make_partition(p.parent, p.begins AT TIME ZONE 'UTC')) INTO made FROM (
		SELECT 'outbox', generate_series(date_trunc('week', since AT TIME ZONE 'UTC'), until AT TIME ZONE 'UTC', '1 week')
		UNION ALL
		SELECT 'command_history', generate_series(date_trunc('month', since AT TIME ZONE 'UTC'),
			until AT TIME ZONE 'UTC' + interval '1 month', '1 month')
	) AS p(parent, begins);
	RETURN made;
END $$;
COMMENT ON FUNCTION pawl.make_partitions IS
	'Makes the partitions of a time, by default of the next two weeks and months. Returns how many were missing.';
SELECT pawl.make_partitions();

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

-- needs: 8

-- Nodes whose role owns nothing: what they do with partitions is done by the rights of the owner of the tables.
-- docs/decisions/0037-a-role-that-owns-nothing.md gives the reasons.

-- In a function that runs with the rights of its owner, current_user is that owner. The caller is the role that was set, or else the
-- user of the session.
CREATE FUNCTION pawl.owns(owner name) RETURNS boolean LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), owner, 'MEMBER')
$$;
COMMENT ON FUNCTION pawl.owns IS 'Whether the caller is a member of the role that owns a function which calls this one.';

-- A new partition gives its readers the rights that they have on its table, and the limit of a year is only for new ones.
CREATE OR REPLACE FUNCTION pawl.make_partition(parent text, moment timestamptz, waits boolean DEFAULT true) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $$
DECLARE
	unit   text := CASE parent WHEN 'outbox' THEN 'week' WHEN 'command_history' THEN 'month' END;
	begins timestamp := date_trunc(unit, moment AT TIME ZONE 'UTC');
	name   text := parent || CASE unit WHEN 'week' THEN to_char(begins, '_IYYY"w"IW') ELSE to_char(begins, '_YYYY"m"MM') END;
	root   regclass;
	reader text;
BEGIN
	IF name IS NULL OR NOT isfinite(moment) THEN
		RAISE EXCEPTION 'there is no partition of "%" for %', parent, moment USING ERRCODE = '22023';
	END IF;
	IF pg_partition_root(to_regclass(format('pawl.%I', name))) = to_regclass(format('pawl.%I', parent)) THEN
		RETURN false;
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
		RETURN false; -- another session was first
	ELSIF root IS NOT NULL THEN
		RAISE EXCEPTION 'partition "%" is being removed', name USING ERRCODE = '55006', HINT = 'Try again.';
	ELSIF to_regclass(format('pawl.%I', name)) IS NULL THEN
		-- Other roles may need a partition, but not any number. One that was detached may be of any time.
		IF abs(extract(epoch FROM moment - clock_timestamp())) > 366 * 86400 AND NOT pawl.owns(current_user) THEN
			RAISE EXCEPTION '% is more than a year away', moment USING ERRCODE = '22023', HINT = 'The owner of the tables can make its partition.';
		END IF;
		EXECUTE format('CREATE TABLE pawl.%I (LIKE pawl.%I INCLUDING ALL)', name, parent);
		IF parent = 'outbox' THEN
			EXECUTE format('ALTER TABLE pawl.%I ADD PRIMARY KEY (tenant, position, type)', name);
		END IF;
		EXECUTE format('COMMENT ON TABLE pawl.%I IS %L', name,
			'The ' || unit || ' from ' || to_char(begins, 'YYYY-MM-DD') || ' of ' || parent || '.');
		-- Retention reads a partition by its own name, before and after it is detached.
		FOR reader IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
				FROM pg_class AS c, aclexplode(c.relacl) AS a
				WHERE c.oid = to_regclass(format('pawl.%I', parent)) AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner LOOP
			EXECUTE format('GRANT SELECT ON pawl.%I TO %s', name, reader);
		END LOOP;
	END IF;
	EXECUTE format('ALTER TABLE pawl.%I ATTACH PARTITION pawl.%I FOR VALUES FROM (%L) TO (%L)', parent, name,
		begins AT TIME ZONE 'UTC', (begins + ('1 ' || unit)::interval) AT TIME ZONE 'UTC');
	RETURN true;
END $$;

-- Roles that own nothing remove only partitions whose time is over.
CREATE FUNCTION pawl.removable(name text, owner name) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
DECLARE
	parent text := substring(name, '^(outbox|command_history)_[0-9]{4,}[wm][0-9]{2}$');
	ends   timestamp := CASE parent
		WHEN 'outbox' THEN to_date(substring(name, '_([^_]+)$'), 'IYYY"w"IW') + interval '1 week'
		WHEN 'command_history' THEN to_date(substring(name, '_([^_]+)$'), 'YYYY"m"MM') + interval '1 month' END;
BEGIN
	IF parent IS NULL THEN
		RAISE EXCEPTION '"%" is not the name of a partition', name USING ERRCODE = '22023';
	END IF;
	IF ends > clock_timestamp() AT TIME ZONE 'UTC' AND NOT pawl.owns(owner) THEN
		RAISE EXCEPTION 'the time of partition "%" is not over', name USING ERRCODE = '42501', HINT = 'The owner of the tables can remove it.';
	END IF;
	RETURN parent;
END $$;
COMMENT ON FUNCTION pawl.removable IS 'The table of a partition that the caller may remove.';

-- The owner detaches a partition CONCURRENTLY, which no function can do. This takes a lock that excludes readers and writers of the
-- table, so it waits only briefly for it, and fails with 55P03.
CREATE FUNCTION pawl.detach_partition(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '200ms' AS $$
DECLARE
	parent  text := pawl.removable(name, current_user);
	pending boolean;
BEGIN
	SELECT i.inhdetachpending INTO pending FROM pg_inherits AS i
		WHERE i.inhrelid = to_regclass(format('pawl.%I', name)) AND i.inhparent = to_regclass(format('pawl.%I', parent));
	IF NOT FOUND THEN
		RETURN false;
	END IF;
	EXECUTE format('ALTER TABLE pawl.%I DETACH PARTITION pawl.%I', parent, name) || CASE WHEN pending THEN ' FINALIZE' ELSE '' END;
	RETURN true;
END $$;
COMMENT ON FUNCTION pawl.detach_partition IS
	'Detaches a partition by the right of the tables'' owner; for others one whose time is over. False: it is not attached. 55P03: the '
	'table is in use, try again.';
REVOKE EXECUTE ON FUNCTION pawl.detach_partition FROM PUBLIC;

CREATE OR REPLACE FUNCTION pawl.drop_partition(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
	parent text := pawl.removable(name, current_user);
	place  regclass;
BEGIN
	-- Attaching takes this lock too.
	EXECUTE format('LOCK TABLE pawl.%I IN SHARE UPDATE EXCLUSIVE MODE', parent);
	place := to_regclass(format('pawl.%I', name));
	IF place IS NULL OR pg_partition_root(place) IS NOT NULL THEN
		RETURN false;
	END IF;
	EXECUTE format('DROP TABLE pawl.%I', name);
	RETURN true;
END $$;
COMMENT ON FUNCTION pawl.drop_partition IS
	'Drops what was a partition and is detached, by the right of the tables'' owner; for others one whose time is over. False: there is none.';

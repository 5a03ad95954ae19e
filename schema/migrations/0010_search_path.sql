-- A function runs with the rights of its caller. Where somebody else may make
-- functions in a schema that the caller looks into, such as "public" before
-- PostgreSQL 15, he could give a name like format a meaning of his own, and so run
-- code as whoever calls Pawl's. (CVE-2018-1058 is of this kind.)
DO $$
DECLARE f regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_proc AS p
			WHERE p.pronamespace = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = 'pawl.command'::regclass) LOOP
		EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', f);
	END LOOP;
END $$;

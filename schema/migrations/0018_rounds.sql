-- needs: 8

-- A transition that begins a new round of a separation of duties needs the engine, as the others do.
CREATE OR REPLACE FUNCTION pawl.declared(
	spec jsonb, transition text, before text, after text, business_key text) RETURNS void
	LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	workflow text := format('version %s of workflow "%s"', spec ->> 'version', spec ->> 'name');
	step     jsonb;
	missing  text;
BEGIN
	missing := CASE
		WHEN jsonb_path_exists(spec, '$.states[*].regions') THEN 'composite states'
		WHEN spec -> 'transitions' @> '[{"auto": true}]' THEN 'automatic transitions'
	END;
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION '% has %, which only the engine can see to', workflow, missing
			USING ERRCODE = '0A000', HINT = 'Submit it to the engine.';
	END IF;
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
	IF step @> '{"internal": true}' THEN
		RAISE EXCEPTION '"%" is internal: only the engine causes it', declared.transition USING ERRCODE = '55000';
	END IF;
	missing := CASE
		WHEN step ? 'activity' THEN 'an activity'
		WHEN step ? 'guards' THEN 'guards'
		WHEN jsonb_path_exists(spec, '$.transitions[*] ? (@.not_by[*] == $name || @.not_by_last[*] == $name || @.since[*] == $name
				|| @.name == $name && (exists (@.not_by[*]) || exists (@.not_by_last[*])))',
			jsonb_build_object('name', declared.transition)) THEN 'a separation of duties'
		ELSE (SELECT format('the timer "%s", whose time the workflow takes from the data', t ->> 'name')
			FROM jsonb_array_elements(spec -> 'timers') WITH ORDINALITY AS m(t, ord)
			WHERE t @> '{"from_data": true}' AND t -> 'in' ? after ORDER BY m.ord LIMIT 1)
	END;
	IF missing IS NOT NULL THEN
		RAISE EXCEPTION '"%" has %, which only the engine can see to', declared.transition, missing
			USING ERRCODE = '0A000', HINT = 'Submit it to the engine.';
	END IF;
END $$;
COMMENT ON FUNCTION pawl.declared IS 'Internal: refuses a transition that a definition does not declare, or that SQL alone cannot make.';

-- needs: 8

-- Children with a business key, by the place at which their parent has started them. The id of another child follows from that place.
-- No update of another instance writes an entry. PostgreSQL cannot read links in which a result has a NUL, and may not write them because
-- of an index.
CREATE INDEX instance_keyed_child ON pawl.instance (tenant, (links -> 'parent' ->> 'instance'), (links -> 'parent' ->> 'place'))
	WHERE strpos(links::text, '\u') = 0 AND links -> 'parent' ->> 'place' IS NOT NULL;

-- What waits for an operator, by the parent of the instance.
ALTER TABLE pawl.command ADD COLUMN parent uuid;
COMMENT ON COLUMN pawl.command.parent IS 'The parent of its instance, if it has ever waited for an operator. NULL: none is known.';
CREATE INDEX command_stuck_under ON pawl.command (tenant, parent) WHERE stuck IS NOT NULL AND parent IS NOT NULL;

UPDATE pawl.command AS c SET parent = (i.links -> 'parent' ->> 'instance')::uuid
FROM pawl.instance AS i
WHERE c.stuck IS NOT NULL AND i.tenant = c.tenant AND i.id = c.instance
	AND CASE WHEN strpos(i.links::text, '\u') = 0 THEN i.links -> 'parent' IS NOT NULL ELSE false END;

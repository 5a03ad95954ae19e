-- needs: 8

-- Lists in the order of creation. An instance keeps its place, so a transition writes its new entry where the old one is. As with
-- instance_list, the condition keeps the planner from reading the index where it has the id: a list says that created_at >= '-infinity'.
CREATE INDEX instance_created ON pawl.instance (tenant, created_at, id) WHERE created_at IS NOT NULL;
COMMENT ON COLUMN pawl.instance.created_at IS 'The time of its first transition; of an import, when that happened.';

-- Instances that were imported before.
UPDATE pawl.instance AS i SET created_at = date_trunc('microseconds', substr(a.cause, 8)::timestamptz)
FROM pawl.audit AS a
WHERE a.tenant = i.tenant AND a.instance = i.id AND a.version = 1 AND starts_with(a.cause, 'import ');

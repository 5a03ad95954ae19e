package doctor

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/schema"
)

// maxRights bounds how many missing rights a report lists.
const maxRights = 10

// lookAtRights compares the rights of the role with those of a node. A role that sees the sessions of others and can write
// nothing is one that only watches.
func lookAtRights(ctx context.Context, x *exam) (string, []Finding, error) {
	missing, err := schema.Missing(ctx, x.pool, x.config.Schema)
	if err != nil {
		return "", nil, err
	}
	if len(missing) == 0 {
		return fmt.Sprintf("the role %s may do what a node does", x.facts.role), nil, nil
	}
	writes, err := one[struct{ Any bool }](ctx, x, writesSQL, x.config.Schema)
	if err != nil {
		return "", nil, err
	}
	if x.facts.sees && !writes.Any {
		return fmt.Sprintf("the role %s only watches: no node can run as it", x.facts.role), nil, nil
	}
	do := dof(`as the owner of the tables, run "migrate grants %s"`, x.facts.role)
	var found []Finding
	for i, r := range missing {
		if i == maxRights {
			found = append(found, problem("others", do, "the role %s lacks %s", x.facts.role, several(len(missing)-i, "more right")))
			break
		}
		found = append(found, problem(r.String(), do, "the role %s lacks %s, which a node needs", x.facts.role, r))
	}
	return "", found, nil
}

// writesSQL reports whether the role may write any of the tables. Parameter: the schema.
const writesSQL = `SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE'))`

package store

import (
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type instance = transitions.Instance

// The columns of an instance without the tenant.
var (
	lifeFields = []field[instance]{ // constant
		id("id", func(i *instance) *uuid.UUID { return &i.ID }),
		text("workflow", func(i *instance) *string { return &i.Workflow }),
		definitionField,
		textOrNull("business_key", func(i *instance) *string { return &i.BusinessKey }),
		moment("created_at", func(i *instance) *time.Time { return &i.CreatedAt }),
	}
	stateFields = []field[instance]{ // written by every transition
		text("state", func(i *instance) *workflow.State { return &i.State }),
		bigint("version", func(i *instance) *int64 { return &i.Version }),
		raw("data", rows.JSON, func(i *instance) *[]byte { return &i.Data }),
		encoded("attributes", rows.JSONB, func(i *instance) *map[string]string { return &i.Attributes }, noMap),
		encoded("actors", rows.JSON, func(i *instance) *map[string][]string { return &i.Actors }, noMap),
		encoded("links", rows.JSON, func(i *instance) *transitions.Links { return &i.Links }, noLinks),
		boolean("paused", func(i *instance) *bool { return &i.Paused }),
		boolean("open", func(i *instance) *bool { return &i.Open }),
		hash("chain", func(i *instance) *[32]byte { return &i.Chain }),
		moment("updated_at", func(i *instance) *time.Time { return &i.UpdatedAt }),
	}
	instanceFields = slices.Concat(lifeFields, stateFields)
	writtenFields  = append(slices.Clip(stateFields), bucketField) // by a change; a new row has the default
	changedFields  = append([]field[Changed]{
		place("row", func(c *Changed) *rows.RowID { return &c.Row }),
		id("id", func(c *Changed) *uuid.UUID { return &c.ID }),
		bigint("before", func(c *Changed) *int64 { return &c.Before }),
	}, within(func(c *Changed) *instance { return c.Instance }, writtenFields...)...)

	migratedFields = append(slices.Clip(changedFields), within(func(c *Changed) *instance { return c.Instance }, definitionField)...)
)

// definitionField changes only with a migration.
var definitionField = integer("definition", func(i *instance) *int { return &i.Definition })

// perBucket is the number of versions of an instance with the same primary key, as in the table and pawl.transition.
const perBucket = 4

// bucketField is the part of the primary key that follows from the version. A new instance always has bucket 0, so that two concurrent
// creations conflict.
var bucketField = field[instance]{Column: rows.Of("bucket", rows.Int4), add: func(s *rows.Set, i *instance) error {
	s.Int4(int(i.Version / perBucket))
	return nil
}}

// beforeState is the number of columns that identify a changed instance.
var beforeState = len(changedFields) - len(writtenFields)

func noLinks(l *transitions.Links) bool {
	return l.InFlight == nil && l.Effects == nil && l.Parent == nil && l.Deferred == nil && l.Migrations == nil
}

// Changed is an instance after a group's transitions.
type Changed struct {
	*transitions.Instance
	Row    rows.RowID // location while it is locked
	Before int64      // version there
}

// Constructors of row buffers.
var (
	Created    = rowsOf(instanceFields) // new instances
	Changes    = rowsOf(changedFields)  // instances after transitions
	Migrations = rowsOf(migratedFields) // instances after a migration and possibly other transitions
)

// instanceSelect lists the columns that ReadInstance reads, of a row named i.
var instanceSelect = selectOf(instanceFields, "i")

// ReadInstance reads an instance of the tenant, nil for NULL columns. It returns an error for values that no engine writes.
func ReadInstance(r *rows.Row, tenant string) (*transitions.Instance, error) {
	if r.IsNull() {
		r.Skip(len(instanceFields))
		return nil, r.Err()
	}
	i := &instance{Tenant: tenant}
	return i, readAll(instanceFields, r, i)
}

// The locks of LockInstances.
const (
	SkipLocked    = "FOR NO KEY UPDATE SKIP LOCKED"
	WaitForLocked = "FOR NO KEY UPDATE"
)

// idColumns name an instance.
var idColumns = []rows.Column{rows.Of("id", rows.UUID)}

// InstanceIDs returns a buffer for the ids of instances.
func InstanceIDs() *rows.Set { return rows.NewSet(idColumns) }

// newest selects columns of an instance, i. Tenant and id are SQL expressions. Transitions leave old versions of the row while an old
// snapshot is open; the backward index scan finds the newest first.
func newest(columns, tenant, id string) string {
	return "SELECT " + columns + " FROM {pawl}.instance i WHERE i.tenant = " + tenant + " AND i.id = " + id + " ORDER BY i.bucket DESC LIMIT 1"
}

// LockInstances locks instances in the order of InstanceIDs. It returns the index of each, from 1, whether another transaction has locked
// it, its location, and the instance. The lateral subquery can only use index probes, in the order of the array. Parameters: the ids.
func LockInstances(b *rows.Builder, how string) {
	b.Add("SELECT u.ord, i.id IS NULL AND (", newest("true", b.Tenant(), "u.id"), ") IS NOT NULL AS held, i.ctid, ", instanceSelect,
		" FROM ").Source(idColumns).Add(" LEFT JOIN LATERAL (", newest("i.ctid, i.*", b.Tenant(), "u.id"), " ", how, ") i ON true")
}

// ReadBoth reads one instance and one command without a lock; see ReadInstance and ReadRecord. Parameters: tenant, id, scope, key.
func ReadBoth(b *rows.Builder) {
	b.Add("SELECT ", instanceSelect, ", ", recordSelect, " FROM (SELECT ").Param(rows.UUID, false).
		Add(" AS id) AS u LEFT JOIN LATERAL (", newest("*", b.Tenant(), "u.id"), ") i ON true LEFT JOIN LATERAL (",
			"SELECT * FROM {pawl}.command c WHERE c.tenant = ", b.Tenant(), " AND c.scope = ").
		Param(rows.Text, false).Add(" AND c.key = ").Param(rows.Text, false).Add(" LIMIT 1) c ON true", audit.Position(b.Tenant()))
}

// InsertInstances inserts instances. Parameters: columns.
func InsertInstances(b *rows.Builder) {
	columns := columnsOf(instanceFields)
	names := rows.Names(columns)
	b.Add("INSERT INTO {pawl}.instance (tenant, ", names, ") SELECT ", b.Tenant(), ", ", names, " FROM ").Source(columns)
}

// ChangeInstances updates locked instances by the location that the lock returned: a locked row does not move, and the join by location
// leaves the planner no other plan, even for a table that it assumes empty. If an instance has another version than before, the transaction
// fails and runs again. Parameters: columns, number of rows.
func ChangeInstances(b *rows.Builder) { changeInstances(b, changedFields) }

// MigrateInstances is ChangeInstances for instances with another version of their definition.
func MigrateInstances(b *rows.Builder) { changeInstances(b, migratedFields) }

func changeInstances(b *rows.Builder, fields []field[Changed]) {
	var set []string
	for _, f := range fields[beforeState:] {
		set = append(set, f.Name+" = u."+f.Name)
	}
	b.Add("WITH changed AS (UPDATE {pawl}.instance AS i SET ", strings.Join(set, ", "), " FROM ").Source(columnsOf(fields)).
		Add(" WHERE i.ctid = u.row AND i.tenant IS NOT DISTINCT FROM ", b.Tenant(),
			" AND i.id IS NOT DISTINCT FROM u.id AND i.version = u.before RETURNING 1) SELECT {pawl}.expect(count(*), ").
		Param(rows.Int8, false).Add(") FROM changed")
}

// ChangeInstance updates one instance unless its version has changed. Parameters: the tenant, then those of ChangeParams.
func ChangeInstance(b *rows.Builder) {
	b.Add("UPDATE {pawl}.instance AS i SET ")
	for n, c := range columnsOf(writtenFields) {
		if n > 0 {
			b.Add(", ")
		}
		b.Add(c.Name, " = ").Param(c.Type, false)
	}
	b.Add(" WHERE i.ctid = (SELECT i.ctid FROM (SELECT ").Param(rows.UUID, false).
		Add(" AS id) AS u CROSS JOIN LATERAL (", newest("i.ctid", b.Tenant(), "u.id"), ") AS i) AND i.version = ").Param(rows.Int8, false)
}

// ChangeParams returns the parameters of ChangeInstance for a buffer with one row.
func ChangeParams(changed *Rows[Changed]) [][]byte {
	list := changed.Params(rows.Single)
	return append(list[beforeState:len(list):len(list)], list[1:beforeState]...)
}

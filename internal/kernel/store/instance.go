package store

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/rows"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

type instance = transitions.Instance

// The columns of an instance, except the tenant, which every statement names.
var (
	lifeFields = []field[instance]{ // those that stay for its life
		id("id", func(i *instance) *uuid.UUID { return &i.ID }),
		text("workflow", func(i *instance) *string { return &i.Workflow }),
		definitionField,
		textOrNull("business_key", func(i *instance) *string { return &i.BusinessKey }),
		moment("created_at", func(i *instance) *time.Time { return &i.CreatedAt }),
	}
	stateFields = []field[instance]{ // those that every transition writes
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

	createdColumns, writtenColumns, changedColumns = columnsOf(instanceFields), columnsOf(writtenFields), columnsOf(changedFields)
)

// definitionField changes only with a migration.
var definitionField = integer("definition", func(i *instance) *int { return &i.Definition })

// perBucket is how many versions of an instance have one primary key. The table and pawl.transition say the same.
const perBucket = 4

// bucketField is the part of the primary key that follows from the version. A new instance is in the bucket 0
// whatever its version is, so that two that are created at the same time have one key.
var bucketField = field[instance]{Column: rows.Of("bucket", rows.Int4), add: func(s *rows.Set, i *instance) error {
	s.Int4(int(i.Version / perBucket))
	return nil
}}

// beforeState is how many columns of a changed instance say which one it is.
var beforeState = len(changedFields) - len(writtenFields)

func noLinks(l *transitions.Links) bool {
	return l.InFlight == nil && l.Effects == nil && l.Parent == nil && l.Deferred == nil && l.Migrations == nil
}

// Changed is an instance after a group's transitions.
type Changed struct {
	*transitions.Instance
	Row    rows.RowID // where it stands, while it is locked
	Before int64      // its version there
}

// Created gathers new instances.
func Created() *Rows[transitions.Instance] { return gather(instanceFields) }

// Changes gathers instances that have moved on.
func Changes() *Rows[Changed] { return gather(changedFields) }

// instanceSelect are the columns that ReadInstance reads, of a row named i.
var instanceSelect = selectOf(instanceFields, "i")

// Migrations gathers instances that have moved on by a migration, perhaps with other transitions.
func Migrations() *Rows[Changed] { return gather(migratedFields) }

// ReadInstance reads an instance of the tenant; nil when the row is not there. Its error is that
// of a value that no engine writes.
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

// InstanceIDs gathers the ids of instances.
func InstanceIDs() *rows.Set { return rows.NewSet(idColumns) }

// newest selects some columns of an instance, i. Every transition leaves a version of the row, which
// stays while an old snapshot is open; the index is scanned back, so the newest ones come first. Tenant
// and id are SQL expressions.
func newest(columns, tenant, id string) string {
	return "SELECT " + columns + " FROM {pawl}.instance i WHERE i.tenant = " + tenant + " AND i.id = " + id + " ORDER BY i.bucket DESC LIMIT 1"
}

// LockInstances locks instances in the order of InstanceIDs. For each it returns its index there, from 1, whether another transaction has
// locked it, its location, and the instance. The lateral subquery can only use index probes, in the order of the array. Parameters: the
// ids.
func LockInstances(b *rows.Builder, how string) {
	b.Add("SELECT u.ord, i.id IS NULL AND (", newest("true", b.Tenant(), "u.id"), ") IS NOT NULL AS held, i.ctid, ", instanceSelect,
		" FROM ").Source(idColumns).Add(" LEFT JOIN LATERAL (", newest("i.ctid, i.*", b.Tenant(), "u.id"), " ", how, ") i ON true")
}

// ReadBoth finds one instance and one key, without a lock: see ReadInstance and ReadRecord.
// Parameters: tenant, id, scope, key.
func ReadBoth(b *rows.Builder) {
	b.Add("SELECT ", instanceSelect, ", ", recordSelect, " FROM (SELECT ").Param(rows.UUID, false).
		Add(" AS id) AS u LEFT JOIN LATERAL (", newest("*", b.Tenant(), "u.id"), ") i ON true LEFT JOIN LATERAL (",
			"SELECT * FROM {pawl}.command c WHERE c.tenant = ", b.Tenant(), " AND c.scope = ").
		Param(rows.Text, false).Add(" AND c.key = ").Param(rows.Text, false).Add(" LIMIT 1) c ON true", audit.Position(b.Tenant()))
}

// InsertInstances inserts new ones. Parameters: columns.
func InsertInstances(b *rows.Builder) {
	names := rows.Names(createdColumns)
	b.Add("INSERT INTO {pawl}.instance (tenant, ", names, ") SELECT ", b.Tenant(), ", ", names, " FROM ").Source(createdColumns)
}

// ChangeInstances updates locked instances at the location that the lock returned: a locked row does not move, and a join by location
// leaves the planner no other plan, even if it assumes an empty table (tenant and id are compared in a form that no index supports). If an
// instance does not have the version that was decided on, the transaction fails and runs again. Parameters: columns, number of rows.
func ChangeInstances(b *rows.Builder) { changeInstances(b, writtenColumns, changedColumns) }

// MigrateInstances is ChangeInstances for those that are on another version of their definition now.
func MigrateInstances(b *rows.Builder) {
	changeInstances(b, append(slices.Clip(writtenColumns), definitionField.Column), columnsOf(migratedFields))
}

func changeInstances(b *rows.Builder, written, given []rows.Column) {
	b.Add("WITH changed AS (UPDATE {pawl}.instance AS i SET ", setAll(written), " FROM ").Source(given).
		Add(" WHERE i.ctid = u.row AND i.tenant IS NOT DISTINCT FROM ", b.Tenant(),
			" AND i.id IS NOT DISTINCT FROM u.id AND i.version = u.before RETURNING 1) SELECT {pawl}.expect(count(*), ").
		Param(rows.Int8, false).Add(") FROM changed")
}

// ChangeInstance updates one, unless it has moved. Parameters: the tenant, then those of ChangeParams.
func ChangeInstance(b *rows.Builder) {
	b.Add("UPDATE {pawl}.instance AS i SET ")
	for n, c := range writtenColumns {
		if n > 0 {
			b.Add(", ")
		}
		b.Add(c.Name, " = ").Param(c.Type, false)
	}
	b.Add(" WHERE i.ctid = (SELECT i.ctid FROM (SELECT ").Param(rows.UUID, false).
		Add(" AS id) AS u CROSS JOIN LATERAL (", newest("i.ctid", b.Tenant(), "u.id"), ") AS i) AND i.version = ").Param(rows.Int8, false)
}

// ChangeParams are the parameters of ChangeInstance, of a set with one row.
func ChangeParams(changed *Rows[Changed]) [][]byte {
	list := changed.Params(rows.Single)
	return append(list[beforeState:len(list):len(list)], list[1:beforeState]...)
}

package outbox

import "github.com/pawlhq/pawl/internal/kernel/audit"

// Pieces of SQL for statements that also read other tables.

// Logs is the table of the logs: the columns tenant and head.
const Logs = "{pawl}.log"

// headRow selects the head of a tenant's log. It scans back from the newest version of the row: see pawl.advance.
func headRow(tenant string) string {
	return "SELECT h.head FROM {pawl}.log h WHERE h.tenant >= " + tenant + " AND h.tenant <= " + tenant + " ORDER BY h.tenant DESC LIMIT 1"
}

// HeadOf returns an expression for the position of a tenant's newest transition, 0 for none. It reads a few pages, however many row
// versions an old snapshot keeps and whatever the plan.
func HeadOf(tenant string) string { return "coalesce({pawl}.head(" + tenant + "), 0)" }

// JoinHead joins the log l to rows with a tenant, without empty logs. For many tenants it is cheaper than the function of HeadOf; it
// requires planning at each execution, or settings that keep the statement to the index.
func JoinHead(tenant string) string { return " CROSS JOIN LATERAL (" + headRow(tenant) + ") AS l" }

// HeldHeads selects the given tenants whose log is locked by another transaction or empty. It locks the others. Parameter: the tenants.
var HeldHeads = "SELECT u.tenant FROM unnest($1::text[]) AS u(tenant) LEFT JOIN LATERAL (" + headRow("u.tenant") +
	" FOR NO KEY UPDATE SKIP LOCKED) AS l ON true WHERE l.head IS NULL"

// FirstAfter selects a column of a tenant's first existing event after a position that meets a condition. All are SQL expressions.
func FirstAfter(column, tenant, position, condition string) string {
	return "SELECT x." + column + " FROM {pawl}.outbox x WHERE x.tenant = " + tenant + " AND x.position > " + position +
		" AND " + condition + " ORDER BY x.position LIMIT 1"
}

// audited joins the audit row a of an event o of the tenant $1.
var audited = audit.RowOf("$1", "o.instance", "o.version")

// JoinEvent joins the event o of the tenant $1 with the position and type of a row d, and its audit row a; their columns are NULL after
// retention.
var JoinEvent = `
LEFT JOIN LATERAL (
	SELECT x.* FROM {pawl}.outbox x WHERE x.tenant = $1 AND x.position = d.position AND x.type = d.type LIMIT 1) AS o ON true` + audited

// Events selects all events of a tenant.
func Events(tenant string) string { return "SELECT * FROM {pawl}.outbox WHERE tenant = " + tenant }

// WeekOf returns an expression for the partition of the events of a time, as a regclass; NULL without such a table.
func WeekOf(at string) string {
	return `to_regclass('{pawl}.outbox' || to_char(` + at + ` AT TIME ZONE 'UTC', '_IYYY"w"IW'))`
}

// Attached returns a condition that a partition of the outbox is attached and not being detached.
func Attached(partition string) string {
	return `EXISTS (SELECT FROM pg_inherits i
		WHERE i.inhparent = '{pawl}.outbox'::regclass AND NOT i.inhdetachpending AND i.inhrelid = ` + partition + ")"
}

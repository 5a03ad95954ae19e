package outbox

// Pieces of SQL for statements that read the log beside tables of their own.

// Logs has a row l for each tenant that has transitions: tenant, head.
const Logs = "pawl.log l"

// FirstAfter selects the first event of a tenant after a position, as position and
// at. Both are SQL expressions.
func FirstAfter(tenant, position string) string {
	return "SELECT x.position, x.at FROM pawl.outbox x WHERE x.tenant = " + tenant + " AND x.position > " + position + " ORDER BY x.position LIMIT 1"
}

// EventOf selects the event of a tenant at a position, of a type. All are SQL
// expressions.
func EventOf(tenant, position, kind string) string {
	return "SELECT x.* FROM pawl.outbox x WHERE x.tenant = " + tenant + " AND x.position = " + position + " AND x.type = " + kind + " LIMIT 1"
}

// HeadOf is the head of a tenant's log, 0 for an empty one.
func HeadOf(tenant string) string {
	return "coalesce((SELECT head FROM pawl.log WHERE tenant = " + tenant + "), 0)"
}

// Events are all events of a tenant.
func Events(tenant string) string { return "SELECT * FROM pawl.outbox WHERE tenant = " + tenant }

// WeekOf is the partition that the events of a time are in, as a regclass; NULL where
// there is no such table.
func WeekOf(at string) string {
	return `to_regclass('pawl.outbox' || to_char(` + at + ` AT TIME ZONE 'UTC', '_IYYY"w"IW'))`
}

// Attached is true of a partition of the outbox, one that is no table on its way out.
func Attached(partition string) string {
	return "EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = 'pawl.outbox'::regclass AND NOT i.inhdetachpending AND i.inhrelid = " + partition + ")"
}

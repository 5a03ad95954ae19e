package store

import "strings"

// BusinessKey joins the row i with the business_key of an instance by a probe of the primary key. Both are SQL expressions.
func BusinessKey(tenant, id string) string {
	return `
LEFT JOIN LATERAL (` + newest("i.business_key", tenant, id) + `) AS i ON true`
}

// Instances selects all instances of a tenant.
func Instances(tenant string) string { return "SELECT * FROM {pawl}.instance WHERE tenant = " + tenant }

// Refusal describes the answer of a key without a transition, for statements of other packages. All fields are SQL expressions.
type Refusal struct {
	Tenant, Scope, Key, Fingerprint string
	Actor, Code, Body, At, Expires  string // of a new one
}

// InsertRefusal inserts the answer of a key for each row of from, unless the key has one.
func InsertRefusal(r Refusal, from string) string {
	return `
INSERT INTO {pawl}.command (tenant, scope, key, fingerprint, status, workflow, transition, instance, actor, code, body, created_at,
	finished_at, expires_at)
SELECT ` + strings.Join([]string{r.Tenant, r.Scope, r.Key, r.Fingerprint, "'failed_final', '', '', '00000000-0000-0000-0000-000000000000'",
		r.Actor, r.Code, r.Body, r.At, r.At, r.Expires}, ", ") + ` FROM ` + from + ` ON CONFLICT DO NOTHING`
}

// WithdrawRefusal deletes the record of a key, c, if it has made no version of an instance, as if the key were unused.
func WithdrawRefusal(r Refusal, condition string) string {
	return `
DELETE FROM {pawl}.command AS c WHERE c.tenant = ` + r.Tenant + ` AND c.scope = ` + r.Scope + ` AND c.key = ` + r.Key + `
	AND c.version IS NULL AND ` + condition
}

// Succeeded reports whether the command with the fingerprint succeeded.
func Succeeded(r Refusal) string {
	return `EXISTS (SELECT FROM {pawl}.command AS c WHERE c.tenant = ` + r.Tenant + ` AND c.scope = ` + r.Scope + ` AND c.key = ` + r.Key +
		` AND c.fingerprint = ` + r.Fingerprint + ` AND c.status = 'succeeded')`
}

// Running reports whether a command is in flight, or the instance that it changed is open. All arguments are SQL expressions.
func Running(tenant, instance, scope, key string) string {
	return `((SELECT c.phase IS NOT NULL FROM {pawl}.command AS c WHERE c.tenant = ` + tenant + ` AND c.scope = ` + scope + ` AND c.key = ` + key + `
	LIMIT 1) IS TRUE OR coalesce((` + newest("i.open", tenant, instance) + `), false))`
}

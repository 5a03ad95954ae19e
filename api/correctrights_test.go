package api_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A correction and a migration are an operator's, and so is a dry run: it tells what an instance is, and what would become of it.
func TestCorrectAndMigrate_Grants(t *testing.T) {
	g := newGuarded(t)
	id, key := "/v1/ops/instances/"+g.instance.String(), "/v1/ops/workflows/parcel/keys/L-1"
	const correction, all = `{"state":"nowhere","reason":"x"}`, `{"workflow":"none","from":1,"to":2}`
	before := g.rows()
	for _, c := range []struct {
		grants                        string
		byID, byKey, migrateID, batch int
	}{
		{"read", 403, 403, 403, 403},
		{"submit", 403, 403, 403, 403},
		{"submit:parcel", 403, 403, 403, 403},
		{"import", 403, 403, 403, 403},
		{"operate:courier", 404, 403, 404, 403},
		{"operate:courier#L-1", 404, 403, 404, 403},
		{"operate:parcel#L-2", 404, 403, 404, 403},
		{"operate:parcel#L-1", 409, 409, 503, 403},
		{"operate:parcel", 409, 409, 503, 403},
		{"operate:@" + g.instance.String(), 409, 409, 503, 403},
		{"operate", 409, 409, 503, 403},
		{"operate:all", 409, 409, 503, 404},
	} {
		for _, r := range []struct {
			path, body string
			want       int
		}{
			{id + "/correct?dry_run=true", correction, c.byID},
			{key + "/correct?dry_run=true", correction, c.byKey},
			{id + "/migrate", `{"to":9}`, c.migrateID},
			{"/v1/ops/migrations?dry_run=true", all, c.batch},
			{"/v1/ops/migrations", all, c.batch},
		} {
			headers := append(g.with(c.grants), "Content-Type", "application/json")
			if strings.HasPrefix(r.path, id) || strings.HasPrefix(r.path, key) {
				headers = append(headers, "Idempotency-Key", c.grants)
			}
			a := g.do("POST", r.path, []byte(r.body), headers...)
			assert.Equalf(t, r.want, a.status, "%s, %s: %.200s", c.grants, r.path, a.body)
		}
	}
	after := g.rows()
	assert.Truef(t, maps.Equal(before, after), "rows before %v, after %v", before, after)
	// What is refused is stored under its key, so the run itself comes last.
	for grants, want := range map[string]int{"submit": 403, "operate:courier": 404, "operate:parcel": 409} {
		g.post(id+"/correct", grants, correction, g.with(grants)...).want(t, want)
	}
}

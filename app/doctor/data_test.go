package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/internal/testkit/pgtest"
)

// Before a build is rolled out, it is said which members of the data it would be refused for.
func TestTheMembersAreNamedThatABuildIsRefusedFor(t *testing.T) {
	p := newPatient(t, pgtest.DirectURL(t))
	p.exec(`INSERT INTO pawl.definition (workflow, version, hash, spec, members, builds)
VALUES ('order', 1, '` + hashOfOrder() + `', '{}', '{"/gone": "string", "/total": "object"}', '{x}')`)
	for _, f := range p.examine().Findings {
		if f.Check == "definitions" {
			for _, want := range []string{`does not have: "/gone"`, `not be able to read: "/total"`} {
				assert.Truef(t, strings.Contains(f.Found, want) && f.Severity == Problem, "%+v, without %q", f, want)
			}
		}
	}
}

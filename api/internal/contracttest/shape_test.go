package contracttest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestShape_Differences(t *testing.T) {
	shape := func(text string) string { return string(appendShape(nil, []byte(text))) }
	const id, other = "01936b0e-0000-7000-8000-000000000001", "f47ac10b-58cc-4372-a567-0e02b2c3d479"
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	const hash2 = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
	for _, alike := range [][2]string{
		{`{"id":"` + id + `"}`, `{"id":"` + other + `"}`},
		{`"2026-01-02T03:04:05Z"`, `"2030-12-31T23:59:59.123456789Z"`},
		{`"parcel:` + id + `"`, `"parcel:` + other + `"`},
		{`/v1/instances/` + id, `/v1/instances/` + other},
		{`"` + hash + `"`, `"` + hash2 + `"`},
		{id, other}, {"", ""},
	} {
		assert.Equalf(t, shape(alike[1]), shape(alike[0]), "%q and %q have two shapes", alike[0], alike[1])
	}
	for _, text := range []string{
		id[1:], id + "0", id[:35] + "g", "x" + id, id + "-" + id, "2026-02-30T03:04:05Z", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z",
		"2026-01-02T03:04:05Zulu", hash[1:], hash + "0", `{"status":404}`, `"guard_refused"`, "-", "01936B0E-0000-7000-8000-000000000001",
	} {
		assert.Equal(t, text, shape(text), "has the shape")
	}
}

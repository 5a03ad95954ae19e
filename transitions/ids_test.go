package transitions

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ids are primary keys and must never change.
func TestInstanceIDGolden(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tenant, workflow, key, want string }{
		{"default", "order", "k-9", "9a226403-34ed-854a-8ae4-8dc14d387e25"},
		{"acme", "order", "k-9", "8d88fc8f-b539-8b4c-b8e1-c2e2a953edc7"},
		{"default", "order", "Grüße 🛒", "fd4e6b2e-40a0-8814-a051-e6d7b0be3d1a"},
		{"", "", "", "63cab8e9-21e4-8324-aa44-bf4e8fdc999d"},
	} {
		got := InstanceID(tt.tenant, tt.workflow, tt.key)
		assert.Equalf(t, tt.want, got.String(), "%q %q %q: got %s", tt.tenant, tt.workflow, tt.key, got)
	}
}

func FuzzInstanceID(f *testing.F) {
	f.Add("default", "order", "k-9", 3)
	f.Add("1:a", "2:bc", "", 1)
	f.Add("", "11", "1:1", 2)
	f.Fuzz(func(t *testing.T, tenant, workflow, key string, n int) {
		id := InstanceID(tenant, workflow, key)
		assert.Truef(t, id.Version() == 8 && id.Variant() == uuid.RFC4122,
			"%s has version %d and variant %s", id, id.Version(), id.Variant())
		assert.Equal(t, id, InstanceID(tenant, workflow, key), "not the same twice")
		// Moving bytes across a border changes the name.
		n = min(max(n, 0), len(workflow))
		assert.Falsef(t, n > 0 && InstanceID(tenant+workflow[:n], workflow[n:], key) == id,
			"%q moved from the workflow to the tenant: same id", workflow[:n])
		if rest := workflow[n:]; rest != "" && InstanceID(tenant, workflow[:n], rest+key) == id {
			t.Errorf("%q moved from the workflow to the key: same id", rest)
		}
	})
}

func TestInstanceIDsDoNotCollideAtBorders(t *testing.T) {
	t.Parallel()
	seen := map[uuid.UUID][3]string{}
	parts := []string{"", "1", ":", "1:", "1:1", "0:", "1:10:", "11", "1:1:", "a", "1:a"}
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				id := InstanceID(a, b, c)
				other, taken := seen[id]
				require.Falsef(t, taken, "%q and %q have one id", other, [3]string{a, b, c})
				seen[id] = [3]string{a, b, c}
			}
		}
	}
}

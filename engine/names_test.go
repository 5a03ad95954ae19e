package engine

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func idOf(n int) (id uuid.UUID) {
	id[0], id[1], id[2], id[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return id
}

func TestNamesRememberTheMostRecentInBoundedMemory(t *testing.T) {
	t.Parallel()
	n := &names{young: map[instanceKey]string{}}
	const all = 5 * namesGeneration
	for i := range all {
		n.put(instanceKey{"t", idOf(i)}, "loan")
		n.put(instanceKey{"t", idOf(0)}, "first") // used again and again
		size := len(n.young) + len(n.old)
		require.Truef(t, size <= 2*namesGeneration, "%d names are kept after %d", size, i)
	}
	for i := all - namesGeneration/2; i < all; i++ {
		name, ok := n.get(instanceKey{"t", idOf(i)})
		require.Truef(t, ok && name == "loan", "a recent one is forgotten: %d of %d", i, all)
	}
	name, ok := n.get(instanceKey{"t", idOf(0)})
	assert.Truef(t, ok && name == "first", "one that was always in use is forgotten: %q, %v", name, ok)
	_, ok = n.get(instanceKey{"t", idOf(1)})
	assert.False(t, ok, "an old one is still there: nothing is ever forgotten")
	_, ok = n.get(instanceKey{"other", idOf(all - 1)})
	assert.False(t, ok, "tenants are mixed up")
}

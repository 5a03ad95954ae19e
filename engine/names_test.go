package engine

import (
	"testing"

	"github.com/google/uuid"
)

func idOf(n int) (id uuid.UUID) {
	id[0], id[1], id[2], id[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return id
}

func TestNamesRememberTheMostRecentInBoundedMemory(t *testing.T) {
	t.Parallel()
	n := newNames()
	const all = 5 * namesGeneration
	for i := range all {
		n.put("t", idOf(i), "loan")
		n.put("t", idOf(0), "first") // used again and again
		if size := len(n.young) + len(n.old); size > 2*namesGeneration {
			t.Fatalf("%d names are kept after %d", size, i)
		}
	}
	for i := all - namesGeneration/2; i < all; i++ {
		if name, ok := n.get("t", idOf(i)); !ok || name != "loan" {
			t.Fatalf("a recent one is forgotten: %d of %d", i, all)
		}
	}
	if name, ok := n.get("t", idOf(0)); !ok || name != "first" {
		t.Errorf("one that was always in use is forgotten: %q, %v", name, ok)
	}
	if _, ok := n.get("t", idOf(1)); ok {
		t.Error("an old one is still there: nothing is ever forgotten")
	}
	if _, ok := n.get("other", idOf(all-1)); ok {
		t.Error("tenants are mixed up")
	}
}

func TestANameThatIsReadStaysYoung(t *testing.T) {
	t.Parallel()
	n := newNames()
	n.put("t", idOf(0), "kept")
	for i := 1; i < 3*namesGeneration; i++ {
		n.put("t", idOf(i), "loan")
		if _, ok := n.get("t", idOf(0)); !ok {
			t.Fatalf("forgotten after %d others, though it was read all the time", i)
		}
	}
}

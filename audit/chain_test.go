package audit_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/audit"
	"github.com/pawlhq/pawl/transitions"
)

// The hashes are stored for good: how they are computed may never change.
func TestLinkGolden(t *testing.T) {
	t.Parallel()
	e := entry(second, 2, 5)
	e.Position = 0
	zero := audit.Link([32]byte{}, &e)
	again := audit.Link(zero, &e)
	const (
		wantZero  = "fdf38fa5ff163690bfcd66efb3c8b2d1c0b513ec0f3a4dc862752058f6448f42"
		wantAgain = "2248801e246a1ceb026ca5245d1675e03331d9af262a6b8019c2c84308b86b2b"
	)
	if got := hex.EncodeToString(zero[:]); got != wantZero {
		t.Errorf("got %s, want %s", got, wantZero)
	}
	if got := hex.EncodeToString(again[:]); got != wantAgain {
		t.Errorf("after it: got %s, want %s", got, wantAgain)
	}
}

func TestEveryFieldButThePositionEntersTheHash(t *testing.T) {
	t.Parallel()
	base := entry(second, 2, 5)
	seen := map[[32]byte]string{audit.Link([32]byte{}, &base): "the base"}
	if h := audit.Link([32]byte{1}, &base); seen[h] != "" {
		t.Error("the hash before does not count")
	}
	for name, change := range map[string]func(*transitions.Entry){
		"tenant": func(e *transitions.Entry) { e.Tenant += "x" }, "instance": func(e *transitions.Entry) { e.Instance = uuid.Nil },
		"version": func(e *transitions.Entry) { e.Version++ }, "workflow": func(e *transitions.Entry) { e.Workflow += "x" },
		"transition": func(e *transitions.Entry) { e.Transition += "x" }, "from": func(e *transitions.Entry) { e.From += "x" },
		"to": func(e *transitions.Entry) { e.To += "x" }, "actor": func(e *transitions.Entry) { e.Actor += "x" },
		"reason": func(e *transitions.Entry) { e.Reason += "x" }, "payload": func(e *transitions.Entry) { e.Payload = nil },
		"data": func(e *transitions.Entry) { e.Data = nil }, "scope": func(e *transitions.Entry) { e.Scope += "x" },
		"key": func(e *transitions.Entry) { e.Key += "x" }, "at": func(e *transitions.Entry) { e.At = e.At.Add(time.Microsecond) },
		"a border": func(e *transitions.Entry) { e.Workflow, e.Transition = e.Workflow+e.Transition[:1], e.Transition[1:] },
	} {
		e := base
		change(&e)
		h := audit.Link([32]byte{}, &e)
		if other, taken := seen[h]; taken {
			t.Errorf("%s: the same hash as %s", name, other)
		}
		seen[h] = name
	}
	moved := base
	moved.Position++
	if seen[audit.Link([32]byte{}, &moved)] != "the base" {
		t.Error("the position counts, which is not known when the hash is taken")
	}
	local := base
	local.At = base.At.In(time.FixedZone("", 3600))
	if seen[audit.Link([32]byte{}, &local)] != "the base" {
		t.Error("the zone of the time counts, which the database does not keep")
	}
}

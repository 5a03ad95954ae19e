package audit_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/internal/kernel/audit"
	"github.com/pawlhq/pawl/internal/kernel/decide"
	"github.com/pawlhq/pawl/transitions"
)

// The hashes are stored permanently: their computation must never change.
func TestLinkGolden(t *testing.T) {
	t.Parallel()
	e := entry(second, 2, 5)
	e.Position = 0
	zero := audit.Link([32]byte{}, &e)
	again := audit.Link(zero, &e)
	const (
		wantZero  = "9bd939aac4723b9b405dd06f30da1ce9873737682d500f3381e016432da552f0"
		wantAgain = "efaf64d65631145a24e5ee7fbb02be2dab366b30f940f282ae0655b7ebd0b78e"
	)
	assert.Equal(t, wantZero, hex.EncodeToString(zero[:]))
	assert.Equal(t, wantAgain, hex.EncodeToString(again[:]), "after it")
}

func TestEveryFieldButThePositionEntersTheHash(t *testing.T) {
	t.Parallel()
	base := entry(second, 2, 5)
	seen := map[[32]byte]string{audit.Link([32]byte{}, &base): "the base"}
	h := audit.Link([32]byte{1}, &base)
	assert.Equal(t, "", seen[h], "the hash before does not count")
	for name, change := range map[string]func(*transitions.Entry){
		"tenant": func(e *transitions.Entry) { e.Tenant += "x" }, "instance": func(e *transitions.Entry) { e.Instance = uuid.Nil },
		"version": func(e *transitions.Entry) { e.Version++ }, "workflow": func(e *transitions.Entry) { e.Workflow += "x" },
		"transition": func(e *transitions.Entry) { e.Transition += "x" }, "from": func(e *transitions.Entry) { e.From += "x" },
		"to": func(e *transitions.Entry) { e.To += "x" }, "actor": func(e *transitions.Entry) { e.Actor += "x" },
		"reason": func(e *transitions.Entry) { e.Reason += "x" }, "payload": func(e *transitions.Entry) { e.Payload = nil },
		"before": func(e *transitions.Entry) { e.Before[0]++ }, "after": func(e *transitions.Entry) { e.After[0]++ },
		"emitted": func(e *transitions.Entry) { e.Emitted = nil }, "scope": func(e *transitions.Entry) { e.Scope += "x" },
		"key": func(e *transitions.Entry) { e.Key += "x" }, "cause": func(e *transitions.Entry) { e.Cause = "" },
		"proof":    func(e *transitions.Entry) { e.Proof += "x" },
		"at":       func(e *transitions.Entry) { e.At = e.At.Add(time.Microsecond) },
		"a border": func(e *transitions.Entry) { e.Workflow, e.Transition = e.Workflow+e.Transition[:1], e.Transition[1:] },
	} {
		e := base
		change(&e)
		h := audit.Link([32]byte{}, &e)
		other, taken := seen[h]
		assert.Falsef(t, taken, "%s: the same hash as %s", name, other)
		seen[h] = name
	}
	moved := base
	moved.Position++
	assert.Equal(t, "the base", seen[audit.Link([32]byte{}, &moved)], "the position counts, which is not known when the hash is taken")
	local := base
	local.At = base.At.In(time.FixedZone("", 3600))
	assert.Equal(t, "the base", seen[audit.Link([32]byte{}, &local)], "the zone of the time counts, which the database does not keep")
}

// The functions in SQL write the same chain.
func TestAnInstanceStandsTheSameInSQL(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	i := instance(second, 4)
	check := func(change string) {
		t.Helper()
		b.exec(t, "UPDATE pawl.instance SET "+change+" WHERE id = $1", second)
		var got []byte
		require.NoError(t, b.pool.QueryRow(t.Context(), "SELECT pawl.standing(i) FROM pawl.instance AS i WHERE id = $1", second).Scan(&got))
		s := decide.StandingOf(i)
		want := s.Digest()
		assert.Equalf(t, string(want[:]), string(got), "after %s, want %x", change, want)
	}
	check("version = 4")
	i.Attributes = map[string]string{"é": "ü \"", "b": "", "aa": "1", "€": "\\", "Z": "z"}
	check(`attributes = '{"é": "ü \"", "b": "", "aa": "1", "€": "\\", "Z": "z"}'`)
	i.Actors, i.Open, i.BusinessKey, i.Definition = nil, false, "K-1", 70000
	check("actors = NULL, open = false, business_key = 'K-1', definition = 70000")
	i.Links.Effects, i.Attributes, i.Paused = nil, nil, true
	check("links = NULL, attributes = '{}', paused = true")
}

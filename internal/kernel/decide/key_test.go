package decide

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// TestClassify is the whole table: every status, with its horizon unset, ahead,
// reached and past, its lease likewise, and the same or another fingerprint.
func TestClassify(t *testing.T) {
	t.Parallel()
	times := []struct {
		name string
		at   time.Time
		over bool // not after now
	}{
		{"unset", time.Time{}, false}, {"ahead", noon.Add(time.Microsecond), false},
		{"now", noon, true}, {"past", noon.Add(-time.Microsecond), true},
	}
	for _, status := range []transitions.Status{transitions.Pending, transitions.Processing, transitions.Succeeded,
		transitions.FailedRetryable, transitions.FailedFinal, transitions.Expired} {
		for _, horizon := range times {
			for _, lease := range times {
				for _, same := range []bool{true, false} {
					r := &transitions.Record{Status: status, ExpiresAt: horizon.at, LockedUntil: lease.at, Fingerprint: [32]byte{1}}
					asked := [32]byte{1}
					if !same {
						asked = [32]byte{2}
					}
					want := wantClaim(status, horizon.over, lease.at.IsZero() || lease.over, same)
					name := fmt.Sprintf("%s, horizon %s, lease %s, same request %v", status, horizon.name, lease.name, same)
					assert.Equal(t, want, Classify(r, asked, noon), name)
				}
			}
		}
	}
	assert.Equal(t, KeyNew, Classify(nil, [32]byte{1}, noon), "nothing stored, want new")
}

// wantClaim says it in the words of the requirements.
func wantClaim(status transitions.Status, expired, unleased, same bool) KeyVerdict {
	if !same {
		return KeyMismatch // before anything else: an expired key does not become another's
	}
	switch {
	case status == transitions.Expired:
		return KeyGone
	case status == transitions.Succeeded && expired, status == transitions.FailedFinal && expired:
		return KeyGone
	case status == transitions.Succeeded:
		return KeyReplay
	case status == transitions.FailedFinal:
		return KeyRefused
	case status == transitions.FailedRetryable:
		return KeyRetryable
	case status == transitions.Processing && unleased:
		return KeyStale
	}
	return KeyActive
}

func TestAnswerOfEveryClaim(t *testing.T) {
	t.Parallel()
	r := &transitions.Record{Code: 201, Instance: madeUp, Version: 3, Position: 17, Body: []byte(`{"state":"open"}`)}
	standing := transitions.Receipt{Status: 202, Replayed: true, Instance: madeUp, Version: 3, Position: 17, Record: r}
	want := transitions.Receipt{Status: 201, Replayed: true, Instance: madeUp, Version: 3, Position: 17,
		Body: []byte(`{"state":"open","position":17}`)}
	for claim := range KeyVerdicts {
		if r.Status = transitions.Processing; KeyVerdict(claim) == KeyReplay || KeyVerdict(claim) == KeyRefused {
			r.Status = transitions.Succeeded
		}
		got, err := KeyVerdict(claim).Answer(r)
		switch KeyVerdict(claim) {
		case KeyReplay, KeyRefused:
			assert.Truef(t, err == nil && fmt.Sprint(got) == fmt.Sprint(want), "%s: got %+v, %v", KeyVerdict(claim), got, err)
		case KeyActive, KeyStale, KeyRetryable:
			assert.Truef(t, err == nil && reflect.DeepEqual(got, standing) && got.InFlight(), "%s: got %+v, %v", KeyVerdict(claim), got, err)
		case KeyMismatch:
			wantCode(t, err, workflow.KeyReused)
			assert.NotContainsf(t, err.Error(), "open", "a mismatch tells about the other request: %v", err)
		case KeyGone:
			wantCode(t, err, workflow.KeyExpired)
		case KeyNew: // it is decided, not answered
		default:
			t.Errorf("%s: nobody says what its answer is", KeyVerdict(claim))
		}
		assert.Falsef(t, err != nil && got.Body != nil, "%s: a body with an error", KeyVerdict(claim))
	}
}

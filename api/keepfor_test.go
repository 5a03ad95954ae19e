package api

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/api/wire"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestKeepForReadsSecondsAndForever(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"1": time.Second, "86400": 24 * time.Hour, "9223372036": 9223372036 * time.Second} {
		var cmd transitions.Command
		r := requestWith(headerReplayFor, value)
		r.Header.Set(headerTombstoneFor, " "+value+" ")
		if err := termsOf(r, &cmd); err != nil || cmd.Replay != want || cmd.Tombstone != want {
			t.Errorf("%s: got %s, %s, %v", value, cmd.Replay, cmd.Tombstone, err)
		}
	}
	var cmd transitions.Command
	err := termsOf(requestWith(headerTombstoneFor, "forever"), &cmd)
	assert.Truef(t, err == nil && cmd.Tombstone == workflow.Forever && cmd.Replay == 0, "got %+v, %v", cmd, err)
	cmd = transitions.Command{}
	in := wire.BulkCommand{ReplayFor: jsontext.Value("60"), TombstoneFor: jsontext.Value(`"forever"`)}
	err = termsOfItem(&in, &cmd)
	assert.Truef(t, err == nil && cmd.Replay == time.Minute && cmd.Tombstone == workflow.Forever, "got %+v, %v", cmd, err)
}

func TestKeepForRefusesWhatIsNoTime(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{""}, {"0"}, {"-1"}, {"+5"}, {"1_0"}, {"1.5"}, {"1e3"}, {"1h"}, {"9223372037"}, {"99999999999999999999"},
		{"forever"}, {"1", "1"}} {
		err := termsOf(requestWith(headerReplayFor, values...), &transitions.Command{})
		assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "%q: got %v", values, err)
	}
	err := termsOf(requestWith(headerTombstoneFor, "Forever"), &transitions.Command{})
	assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "got %v", err)
	for _, value := range []string{`"60"`, `1.5`, `null`, `true`, `{}`, `""`} {
		for _, in := range []wire.BulkCommand{{ReplayFor: jsontext.Value(value)}, {TombstoneFor: jsontext.Value(value)}} {
			err := termsOfItem(&in, &transitions.Command{})
			assert.Equalf(t, workflow.InvalidRequest, workflow.CodeOf(err), "%+v: got %v", in, err)
		}
	}
}

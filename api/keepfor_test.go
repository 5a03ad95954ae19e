package api

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

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
	if err := termsOf(requestWith(headerTombstoneFor, "forever"), &cmd); err != nil || cmd.Tombstone != workflow.Forever || cmd.Replay != 0 {
		t.Errorf("got %+v, %v", cmd, err)
	}
	cmd = transitions.Command{}
	in := BulkCommand{ReplayFor: jsontext.Value("60"), TombstoneFor: jsontext.Value(`"forever"`)}
	if err := termsOfItem(&in, &cmd); err != nil || cmd.Replay != time.Minute || cmd.Tombstone != workflow.Forever {
		t.Errorf("got %+v, %v", cmd, err)
	}
}

func TestKeepForRefusesWhatIsNoTime(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{{""}, {"0"}, {"-1"}, {"+5"}, {"1_0"}, {"1.5"}, {"1e3"}, {"1h"}, {"9223372037"}, {"99999999999999999999"},
		{"forever"}, {"1", "1"}} {
		if err := termsOf(requestWith(headerReplayFor, values...), &transitions.Command{}); workflow.CodeOf(err) != workflow.InvalidRequest {
			t.Errorf("%q: got %v", values, err)
		}
	}
	if err := termsOf(requestWith(headerTombstoneFor, "Forever"), &transitions.Command{}); workflow.CodeOf(err) != workflow.InvalidRequest {
		t.Errorf("got %v", err)
	}
	for _, value := range []string{`"60"`, `1.5`, `null`, `true`, `{}`, `""`} {
		for _, in := range []BulkCommand{{ReplayFor: jsontext.Value(value)}, {TombstoneFor: jsontext.Value(value)}} {
			if err := termsOfItem(&in, &transitions.Command{}); workflow.CodeOf(err) != workflow.InvalidRequest {
				t.Errorf("%+v: got %v", in, err)
			}
		}
	}
}

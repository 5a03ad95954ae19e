package pawltest_test

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/pawltest"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestReplayRetention(t *testing.T) {
	t.Parallel()
	w := workflow.Define("note", 1, workflow.Start("write", "written", func(c *workflow.Call, _ *struct{}, n note) error {
		if n.Text == "keep" {
			c.KeepAnswer(3 * time.Hour)
		}
		return nil
	})).Final("written").Keep(workflow.Horizons{Replay: time.Hour, MaxReplay: 2 * time.Hour})
	s := pawltest.Run(t, w)
	write := func(key, text string, replay time.Duration) transitions.Command {
		return transitions.Command{Workflow: "note", Transition: "write", Key: key,
			Payload: []byte(`{"text":"` + text + `"}`), Options: transitions.Options{Scope: "s", Replay: replay}}
	}
	for key, c := range map[string]struct {
		text   string
		replay time.Duration
		want   time.Duration
	}{"workflow": {"", 0, time.Hour}, "caller": {"", 2 * time.Hour, 2 * time.Hour}, "action": {"keep", time.Minute, 3 * time.Hour}} {
		cmd := write(key, c.text, c.replay)
		if _, err := s.Submit(cmd); err != nil {
			t.Fatal(err)
		}
		s.Skip(c.want - time.Microsecond)
		if r, err := s.Submit(cmd); err != nil || !r.Replayed {
			t.Errorf("%s, just before: %+v, %v", key, r, err)
		}
		s.Skip(time.Microsecond)
		_, err := s.Submit(cmd)
		wantCode(t, err, workflow.KeyExpired)
		_, err = s.Command("", "s", key)
		wantCode(t, err, workflow.KeyExpired)
	}
	_, err := s.Submit(write("too long", "", 2*time.Hour+1))
	wantCode(t, err, workflow.InvalidRequest)
}

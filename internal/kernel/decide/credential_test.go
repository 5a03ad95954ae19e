package decide

import (
	"testing"
	"time"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestScheduledCommandKeepsItsCredential(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	c := l.command("edit", `{"text":"later"}`)
	c.Credential = transitions.Credential{Key: "4fKq0ZbT9xWc", Ticket: "t", Until: noon.Add(2 * time.Hour)}
	due, err := l.scheduled(c).Due(l.w)
	if err != nil || due.Credential != c.Credential {
		t.Errorf("%+v, %v", due.Credential, err)
	}
	c.Credential.Key = "\xff"
	if err := CheckCommand(c); workflow.CodeOf(err) != workflow.InvalidRequest {
		t.Error(err)
	}
}

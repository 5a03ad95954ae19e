package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestScheduledCommandKeepsItsCredential(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	c := l.command("edit", `{"text":"later"}`)
	c.Credential = transitions.Credential{Key: "4fKq0ZbT9xWc", Ticket: "t", Until: noon.Add(2 * time.Hour)}
	due, err := l.scheduled(c).Due(l.w)
	assert.Truef(t, err == nil && due.Credential == c.Credential, "%+v, %v", due.Credential, err)
	c.Credential.Key = "\xff"
	err = CheckCommand(c)
	assert.Equal(t, workflow.InvalidRequest, workflow.CodeOf(err), err)
}

package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func TestCheckRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name    string
		change  func(*transitions.Command)
		want    workflow.Code
		message string
	}{
		{"no key", func(c *transitions.Command) { c.Key = "" }, workflow.KeyMissing, "key is required"},
		{"a key too long", func(c *transitions.Command) { c.Key = long(transitions.MaxKey + 1) }, workflow.KeyInvalid, "longer than 255 bytes"},
		{"a key too long in bytes, not in letters", func(c *transitions.Command) { c.Key = strings.Repeat("é", 128) }, workflow.KeyInvalid,
			"longer than 255"},
		{"a key with a NUL", func(c *transitions.Command) { c.Key = "a\x00b" }, workflow.KeyInvalid, "NUL"},
		{"a key that is not UTF-8", func(c *transitions.Command) { c.Key = "a\xff" }, workflow.KeyInvalid, "UTF-8"},
		{"a scope too long", func(c *transitions.Command) { c.Scope = long(transitions.MaxScope + 1) }, workflow.ScopeInvalid,
			"longer than 255 bytes"},
		{"a scope with a NUL", func(c *transitions.Command) { c.Scope = "\x00" }, workflow.ScopeInvalid, "NUL"},
		{"a scope that is not UTF-8", func(c *transitions.Command) { c.Scope = "\xc3" }, workflow.ScopeInvalid, "UTF-8"},
		{"a tenant too long", func(c *transitions.Command) { c.Tenant = long(transitions.MaxTenant + 1) }, workflow.InvalidRequest,
			"the tenant is longer than 64"},
		{"a tenant with a NUL", func(c *transitions.Command) { c.Tenant = "\x00" }, workflow.InvalidRequest, "the tenant contains a NUL"},
		{"a tenant that is not UTF-8", func(c *transitions.Command) { c.Tenant = "\xff" }, workflow.InvalidRequest, "the tenant is not valid"},
		{"an actor too long", func(c *transitions.Command) { c.Actor = long(transitions.MaxActor + 1) }, workflow.InvalidRequest,
			"the actor is longer"},
		{"an actor with a NUL", func(c *transitions.Command) { c.Actor = "\x00" }, workflow.InvalidRequest, "the actor contains"},
		{"a business key too long", func(c *transitions.Command) { c.BusinessKey = long(256) }, workflow.InvalidRequest,
			"the business key is longer"},
		{"a business key with a NUL", func(c *transitions.Command) { c.BusinessKey = "\x00" }, workflow.InvalidRequest,
			"the business key contains"},
		{"both addresses", func(c *transitions.Command) { c.Instance, c.BusinessKey = madeUp, "E-1" }, workflow.InvalidRequest, "not both"},
		{"a business key of no workflow", func(c *transitions.Command) { c.Workflow, c.BusinessKey = "", "E-1" }, workflow.InvalidRequest,
			"needs its workflow"},
		{"no transition", func(c *transitions.Command) { c.Transition = "" }, workflow.InvalidRequest, "transition is missing"},
		{"a negative version", func(c *transitions.Command) { c.IfVersion = -1 }, workflow.InvalidRequest, "negative"},
		{"a time past all", func(c *transitions.Command) { c.NotBefore = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, workflow.InvalidRequest,
			"year 9999"},
		{"a payload too large", func(c *transitions.Command) { c.Payload = make([]byte, transitions.MaxPayload+1) }, workflow.TooLarge,
			"larger than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := transitions.Command{Key: "k", Workflow: "expense", Transition: "add"}
			tt.change(&c)
			err := CheckCommand(c)
			wantCode(t, err, tt.want)
			assert.ErrorContains(t, err, tt.message, "want a message with")
		})
	}
}

func TestCheckTakesTheLongestOfEverything(t *testing.T) {
	t.Parallel()
	c := transitions.Command{
		Key:    strings.Repeat("k", transitions.MaxKey),
		Tenant: strings.Repeat("t", transitions.MaxTenant),
		Actor:  strings.Repeat("a", transitions.MaxActor), BusinessKey: strings.Repeat("b", workflow.MaxBusinessKey),
		Workflow: "expense", Transition: "add", Payload: make([]byte, transitions.MaxPayload),
		Options: transitions.Options{Scope: strings.Repeat("s", transitions.MaxScope)},
	}
	assert.NoError(t, CheckCommand(c))
	assert.NoError(t, CheckCommand(transitions.Command{Key: " \t\n\u2028'\"\\", Transition: "add"}), "a key is opaque, but")
}

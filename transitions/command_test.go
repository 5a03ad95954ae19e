package transitions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

func TestCheckRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		name    string
		change  func(*Command)
		want    workflow.Code
		message string
	}{
		{"no key", func(c *Command) { c.Key = "" }, workflow.KeyMissing, "key is required"},
		{"a key too long", func(c *Command) { c.Key = long(MaxKey + 1) }, workflow.KeyInvalid, "longer than 255 bytes"},
		{"a key too long in bytes, not in letters", func(c *Command) { c.Key = strings.Repeat("é", 128) }, workflow.KeyInvalid, "longer than 255"},
		{"a key with a NUL", func(c *Command) { c.Key = "a\x00b" }, workflow.KeyInvalid, "NUL"},
		{"a key that is not UTF-8", func(c *Command) { c.Key = "a\xff" }, workflow.KeyInvalid, "UTF-8"},
		{"a scope too long", func(c *Command) { c.Scope = long(MaxScope + 1) }, workflow.ScopeInvalid, "longer than 255 bytes"},
		{"a scope with a NUL", func(c *Command) { c.Scope = "\x00" }, workflow.ScopeInvalid, "NUL"},
		{"a scope that is not UTF-8", func(c *Command) { c.Scope = "\xc3" }, workflow.ScopeInvalid, "UTF-8"},
		{"a tenant too long", func(c *Command) { c.Tenant = long(MaxTenant + 1) }, workflow.InvalidRequest, "the tenant is longer than 64"},
		{"a tenant with a NUL", func(c *Command) { c.Tenant = "\x00" }, workflow.InvalidRequest, "the tenant contains a NUL"},
		{"a tenant that is not UTF-8", func(c *Command) { c.Tenant = "\xff" }, workflow.InvalidRequest, "the tenant is not valid"},
		{"an actor too long", func(c *Command) { c.Actor = long(MaxActor + 1) }, workflow.InvalidRequest, "the actor is longer"},
		{"an actor with a NUL", func(c *Command) { c.Actor = "\x00" }, workflow.InvalidRequest, "the actor contains"},
		{"a business key too long", func(c *Command) { c.BusinessKey = long(256) }, workflow.InvalidRequest, "the business key is longer"},
		{"a business key with a NUL", func(c *Command) { c.BusinessKey = "\x00" }, workflow.InvalidRequest, "the business key contains"},
		{"both addresses", func(c *Command) { c.Instance, c.BusinessKey = madeUp, "E-1" }, workflow.InvalidRequest, "not both"},
		{"a business key of no workflow", func(c *Command) { c.Workflow, c.BusinessKey = "", "E-1" }, workflow.InvalidRequest, "needs its workflow"},
		{"no transition", func(c *Command) { c.Transition = "" }, workflow.InvalidRequest, "transition is missing"},
		{"a negative version", func(c *Command) { c.IfVersion = -1 }, workflow.InvalidRequest, "negative"},
		{"a time past all", func(c *Command) { c.NotBefore = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, workflow.InvalidRequest, "year 9999"},
		{"a payload too large", func(c *Command) { c.Payload = make([]byte, MaxPayload+1) }, workflow.TooLarge, "larger than 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Command{Key: "k", Workflow: "expense", Transition: "add"}
			tt.change(&c)
			err := c.Check()
			wantCode(t, err, tt.want)
			if err == nil || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("got %v, want a message with %q", err, tt.message)
			}
		})
	}
}

func TestCheckTakesTheLongestOfEverything(t *testing.T) {
	t.Parallel()
	c := Command{
		Key: strings.Repeat("k", MaxKey), Scope: strings.Repeat("s", MaxScope), Tenant: strings.Repeat("t", MaxTenant),
		Actor: strings.Repeat("a", MaxActor), BusinessKey: strings.Repeat("b", workflow.MaxBusinessKey),
		Workflow: "expense", Transition: "add", Payload: make([]byte, MaxPayload),
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if err := (Command{Key: " \t\n\u2028'\"\\", Transition: "add"}).Check(); err != nil {
		t.Errorf("a key is opaque, but %v", err)
	}
}

func TestCheckOfSingleParts(t *testing.T) {
	t.Parallel()
	wantCode(t, CheckKey(""), workflow.KeyMissing)
	wantCode(t, CheckKey("\x00"), workflow.KeyInvalid)
	wantCode(t, CheckKey("k"), "")
	wantCode(t, CheckScope(""), workflow.ScopeMissing)
	wantCode(t, CheckScope("\x00"), workflow.ScopeInvalid)
	wantCode(t, CheckScope("s"), "")
	wantCode(t, CheckTenant(""), "")
	wantCode(t, CheckTenant("\x00"), workflow.InvalidRequest)
}

func TestDefaultScopeTellsInstancesApartAndCreationsByTransition(t *testing.T) {
	t.Parallel()
	if got, want := DefaultScope("expense", "add", madeUp), "expense:"+madeUp.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := DefaultScope("expense", "file", uuid.Nil), "expense:file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	longest := strings.Repeat("w", 64)
	if n := len(DefaultScope(longest, longest, uuid.Nil)); n > MaxScope {
		t.Errorf("the longest names make a scope of %d bytes", n)
	}
}

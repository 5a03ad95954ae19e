package transitions

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

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

func TestDefaultScopeDistinguishesInstances(t *testing.T) {
	t.Parallel()
	if got, want := DefaultScope("expense", "add", madeUp), "expense:"+madeUp.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := DefaultScope("expense", "file", uuid.Nil), "expense:file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	longest := strings.Repeat("w", 64)
	n := len(DefaultScope(longest, longest, uuid.Nil))
	assert.Truef(t, n <= MaxScope, "the longest names make a scope of %d bytes", n)
}

package parse

import (
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestIDsHaveOneForm(t *testing.T) {
	const id = "01936b0e-7a6c-7000-8000-000000000001"
	if got, err := ID(id); err != nil || got.String() != id {
		t.Errorf("%s: %s, %v", id, got, err)
	}
	for _, s := range []string{
		"", "x", uuid.Nil.String(), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "0", id[:35],
	} {
		if got, err := ID(s); err == nil {
			t.Errorf("%q was taken for %s", s, got)
		}
	}
}

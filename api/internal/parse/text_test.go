package parse

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
)

func TestIDsHaveOneForm(t *testing.T) {
	const id = "01936b0e-7a6c-7000-8000-000000000001"
	got, err := ID(id)
	assert.Truef(t, err == nil && got.String() == id, "%s: %s, %v", id, got, err)
	for _, s := range []string{
		"", "x", uuid.Nil.String(), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "0", id[:35],
	} {
		got, err := ID(s)
		assert.Errorf(t, err, "%q was taken for %s", s, got)
	}
}

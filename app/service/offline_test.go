package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/schema"
)

func TestPrivateDatabase_ErrorsNameFolder(t *testing.T) {
	t.Setenv("PAWL_HOME", "/srv/wrong")
	err := ofPrivate(schema.ErrBehind)
	assert.True(t, errors.Is(err, schema.ErrBehind) &&
		strings.Contains(err.Error(), "the private one in /srv/wrong/postgres: PAWL_HOME names another folder"),
		err)
}

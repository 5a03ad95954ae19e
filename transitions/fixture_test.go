package transitions

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/workflow"
)

const (
	open workflow.State = "open"
	paid workflow.State = "paid"
)

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	madeUp = uuid.MustParse("01936b0e-0000-7000-8000-000000000001")
)

func wantCode(t testing.TB, err error, want workflow.Code) {
	t.Helper()
	assert.Equal(t, want, workflow.CodeOf(err), err)
}

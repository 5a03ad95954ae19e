package flags

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	states := []string{"placed", "paid", "shipped"}
	for name, want := range map[string]string{
		"paidd": "did you mean paid?", "PLACED": "did you mean placed?", "hsipped": "did you mean shipped?",
		"elephant": "there are: paid, placed, shipped",
		"x":        "there are: paid, placed, shipped",
	} {
		assert.Equal(t, want, Nearest(name, states), name)
	}
	assert.Equal(t, "there is none", Nearest("x", nil))
}

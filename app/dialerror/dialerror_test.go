package dialerror_test

import (
	"errors"
	"testing"

	"github.com/pawlhq/pawl/app/dialerror"
)

func TestExplain_Duplicates(t *testing.T) {
	cause := errors.New("failed to connect:\n\ta (1):  refused\n\ta (1): refused\n\tb (2): refused\n")
	err := dialerror.OneLine(cause)
	if got, want := err.Error(), "failed to connect: a (1): refused b (2): refused"; got != want || !errors.Is(err, cause) {
		t.Errorf("%q, want %q", got, want)
	}
}

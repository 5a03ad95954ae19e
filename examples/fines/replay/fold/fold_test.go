package fold_test

import (
	"errors"
	"fmt"
	"go/build"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/examples/fines/replay/fold"
)

const head = "case,activity,time,resource,amount,article,vehicle_class,points,dismissal,expense," +
	"payment_amount,total_payment_amount,notification_type,last_sent\n"

const sample = head +
	"A1,Create Fine,2006-07-24T00:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,\n" +
	"A1,Payment,2006-07-25T00:00:00+02:00,,,,,,,,35.0,35.0,,\n" +
	"A1,Send Fine,2006-12-05T00:00:00+01:00,,,,,,,11.0,,,,\n" +
	"A2,Create Fine,2006-08-02T00:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,\n" +
	"A2,Send Fine,2006-12-12T00:00:00+01:00,,,,,,,11.0,,,,\n" +
	"A3,Create Fine,2006-08-02T00:00:00+02:00,561,35.0,999,A,0,NIL,,,0.0,,\n" +
	"A3,Send Fine,2006-12-12T00:00:00+01:00,,,,,,,11.0,,,,\n"

// A case that was paid is sent all the same, which is refused.
func ExampleRun() {
	_, err := fold.Run(strings.NewReader(sample), func(c fold.Case) error {
		fmt.Printf("%s is %s at version %d:", c.ID, c.State, c.Version)
		for _, o := range c.Outcomes {
			fmt.Printf(" %q", o.Reason)
		}
		fmt.Println()
		return nil
	})
	fmt.Println(err)

	// Output:
	// A1 is paid at version 2: "" "" "illegal_transition"
	// A2 is sent at version 2: "" ""
	// A3 is  at version 0: "invalid_payload" "instance_not_found"
	// <nil>
}

// The reference is worth something because it shares nothing with what it
// checks.
func TestFoldImportsTheStandardLibraryAlone(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	require.NoError(t, err)
	for _, path := range p.Imports {
		assert.NotContains(t, path, ".", "the fold imports")
	}
}

func TestRunEndsAtTheCallersError(t *testing.T) {
	enough := errors.New("enough")
	var seen []string
	_, err := fold.Run(strings.NewReader(sample), func(c fold.Case) error { seen = append(seen, c.ID); return enough })
	assert.Truef(t, errors.Is(err, enough) && len(seen) == 1, "%v, %v", seen, err)
}

func TestRunRefusesWhatIsNoLog(t *testing.T) {
	for name, log := range map[string]string{
		"nothing":          "",
		"other columns":    "case,activity\n",
		"unknown activity": head + "A1,Tow Car,2006-07-24T00:00:00+02:00,,,,,,,,,,,\n",
		"no time":          head + "A1,Create Fine,soon,561,35.0,157,A,0,NIL,,,0.0,,\n",
		"time of day":      head + "A1,Create Fine,2006-07-24T10:00:00+02:00,561,35.0,157,A,0,NIL,,,0.0,,\n",
		"no number":        head + "A1,Create Fine,2006-07-24T00:00:00+02:00,x,35.0,157,A,0,NIL,,,0.0,,\n",
		"no sum":           head + "A1,Create Fine,2006-07-24T00:00:00+02:00,561,35.001,157,A,0,NIL,,,0.0,,\n",
		"short row":        head + "A1,Create Fine\n",
	} {
		_, err := fold.Run(strings.NewReader(log), func(fold.Case) error { return nil })
		assert.Errorf(t, err, "%s was taken for a log", name)
	}
}

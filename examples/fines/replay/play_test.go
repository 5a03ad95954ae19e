package replay

import (
	"strings"
	"testing"

	"github.com/pawlhq/pawl/examples/fines/replay/fold"
)

func TestLogIsMadeUpWhereThereIsNone(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		log, err := Find(folder, 1000)
		events := 0
		_, runErr := log.each(func(c fold.Case) error { events += len(c.Rows); return nil })
		if err != nil || runErr != nil || events < 1000 || events > 1020 || !strings.Contains(log.String(), "the first 1000 events of made up") {
			t.Errorf("%q: %v, %d, %v, %v", folder, log, events, err, runErr)
		}
	}
}

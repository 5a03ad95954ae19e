package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/replay/eventlog"
)

func TestLogIsMadeUpWhereThereIsNone(t *testing.T) {
	for _, folder := range []string{"", t.TempDir()} {
		log, err := Find(folder, 1000)
		events, countErr := log.count()
		if err != nil || countErr != nil || events != 1000 || !strings.Contains(log.String(), "the first 1000 events of made up") {
			t.Errorf("%q: %v, %d, %v", folder, log, events, err)
		}
	}
}

func TestLogOfTheFolderIsCounted(t *testing.T) {
	folder := t.TempDir()
	f, err := os.Create(filepath.Join(folder, FileName)) // plain: the reader sees what it is
	if err != nil {
		t.Fatal(err)
	}
	events := int64(0)
	for c := range eventlog.Generate(2, 50) {
		events += int64(len(c.Events))
	}
	if err := eventlog.Write(f, eventlog.Generate(2, 50)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := Find(folder, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := log.count(); err != nil || got != events || log.String() != f.Name() {
		t.Errorf("%v has %d events, want %d: %v", log, got, events, err)
	}
	if err := os.WriteFile(f.Name(), []byte("not,a,log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := log.count(); err == nil {
		t.Error("no error for a file that is no log")
	}
}

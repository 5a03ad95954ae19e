package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/internal/localpg"
)

func TestLogFlags(t *testing.T) {
	for _, tt := range []struct{ args, want, unwanted string }{
		{"", "level=WARN msg=warned", "informed"},
		{"--log-level info", "level=INFO msg=informed", "debugged"},
		{"--log-level error", "", "warned"},
		{"--log-format json", `"level":"WARN","msg":"warned"`, "informed"},
		{"--log-format json --log-level debug", `"level":"DEBUG","msg":"debugged"`, ""},
		{"--log-format text --log-level DEBUG", "level=DEBUG msg=debugged", ""},
	} {
		if logged := logged(t, tt.args); !strings.Contains(logged, tt.want) || tt.unwanted != "" && strings.Contains(logged, tt.unwanted) {
			t.Errorf("%q logs %s", tt.args, logged)
		} else if strings.Contains(tt.args, "json") && !json.Valid([]byte(strings.Split(logged, "\n")[0])) {
			t.Errorf("%q logs no JSON: %s", tt.args, logged)
		}
	}
	// A program's own logger is used unless a flag asks for another.
	var own bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&own, nil)))
	defer slog.SetDefault(before)
	if out := logged(t, ""); out != "" || !strings.Contains(own.String(), "warned") {
		t.Errorf("own %s, standard error %s", own.String(), out)
	}
	if out := logged(t, "--log-format json"); !strings.Contains(out, "warned") {
		t.Errorf("a flag does not count: %s", out)
	}
	for _, wrong := range []string{"--log-format xml", "--log-level loud", "--log-level info+1"} {
		if code, _, stderr := run(t.Context(), append([]string{"version"}, strings.Fields(wrong)...)...); code != 2 {
			t.Errorf("%s: %d %s", wrong, code, stderr)
		}
	}
}

// logged returns the lines that a command with flags writes.
func logged(t *testing.T, args string) string {
	t.Helper()
	root := CommandLine()
	var out bytes.Buffer
	root.SetErr(&out)
	if err := root.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	log := logOf(root, slog.LevelWarn)
	log.Debug("debugged")
	log.Info("informed")
	log.Warn("warned")
	return out.String()
}

// Commands that work on what is there do not start a database server of their own.
func TestOpsWithoutDatabase(t *testing.T) {
	home := t.TempDir()
	t.Setenv("DATABASE_URL", "")
	t.Setenv(localpg.EnvHome, home)
	for _, args := range []string{"ops counts", "ops stuck", "keys list", "verify", "doctor", "migrate status"} {
		code, _, stderr := run(t.Context(), strings.Fields(args)...)
		if code != 2 || !strings.Contains(stderr, "no database is named, and there is no private one: set DATABASE_URL or --database") {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == "data" {
			t.Errorf("there is %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

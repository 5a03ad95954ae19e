package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	out := logged(t, "")
	assert.Truef(t, out == "" && strings.Contains(own.String(), "warned"), "own %s, standard error %s", own.String(), out)
	assert.Contains(t, logged(t, "--log-format json"), "warned", "a flag does not count")
	for _, wrong := range []string{"--log-format xml", "--log-level loud", "--log-level info+1"} {
		code, _, stderr := run(t.Context(), append([]string{"version"}, strings.Fields(wrong)...)...)
		assert.Equalf(t, 2, code, "%s %s", wrong, stderr)
	}
}

// logged returns the lines that a command with flags writes.
func logged(t *testing.T, args string) string {
	t.Helper()
	root := CommandLine()
	var out bytes.Buffer
	root.SetErr(&out)
	require.NoError(t, root.ParseFlags(strings.Fields(args)))
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
		if code != 2 || !strings.Contains(stderr, "no database is named, and no private one exists: set DATABASE_URL or --database") {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
	err := filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		assert.Falsef(t, err == nil && d.Name() == "data", "there is %s", path)
		return err
	})
	require.NoError(t, err)
}

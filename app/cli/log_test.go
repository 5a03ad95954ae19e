package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		logged := logged(t, tt.args)
		assert.Contains(t, logged, tt.want, tt.args)
		if tt.unwanted != "" {
			assert.NotContains(t, logged, tt.unwanted, tt.args)
		}
	}
	// A program's own logger is used unless a flag asks for another.
	var own bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&own, nil)))
	defer slog.SetDefault(before)
	assert.Empty(t, logged(t, ""))
	assert.Contains(t, own.String(), "warned")
	assert.Contains(t, logged(t, "--log-format json"), "warned")
	for _, wrong := range []string{"--log-format xml", "--log-level loud", "--log-level info+1"} {
		code, _, stderr := run(t.Context(), append([]string{"version"}, strings.Fields(wrong)...)...)
		assert.Equalf(t, 2, code, "%s: %s", wrong, stderr)
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

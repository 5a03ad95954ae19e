// Package deploy contains the tests of the files in this folder.
package deploy

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/cli"
	"github.com/pawlhq/pawl/app/service"
)

func fileOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// found is the only group of a pattern in a text.
func found(t *testing.T, pattern, text string) string {
	t.Helper()
	m := regexp.MustCompile("(?ms)" + pattern).FindStringSubmatch(text)
	require.NotNilf(t, m, "%s is nowhere in\n%s", pattern, text)
	return m[1]
}

const (
	containerfile = "deploy/Containerfile"
	unit          = "deploy/systemd/pawl.service"
	kubernetes    = "deploy/kubernetes/pawl.yaml"
)

// served are the arguments with which each package starts a node, and those of the page that leads there.
func served(t *testing.T) map[string][]string {
	t.Helper()
	var inContainer []string
	require.NoError(t, json.Unmarshal([]byte(found(t, `^CMD (\[.*?\])$`, fileOf(t, containerfile))), &inContainer))
	var inPod []string
	for line := range strings.Lines(found(t, `^            - (serve\n.*?)^          env:`, fileOf(t, kubernetes))) {
		inPod = append(inPod, strings.TrimPrefix(strings.TrimSpace(line), "- "))
	}
	return map[string][]string{
		containerfile:    inContainer,
		unit:             strings.Fields(found(t, `^ExecStart=/usr/local/bin/pawl (.*?)$`, fileOf(t, unit))),
		kubernetes:       inPod,
		"docs/access.md": strings.Fields(found(t, `pawl (serve --auth .*?)$`, fileOf(t, "docs/access.md"))),
	}
}

// The command line takes what the packages start a node with, and that is what the page has led to.
func TestPackagesServeAsThePageSays(t *testing.T) {
	for where, args := range served(t) {
		c, rest, err := cli.CommandLine().Find(args)
		require.Truef(t, err == nil && c.Name() == "serve", "%s: %v, %v", where, c, err)
		err = c.ParseFlags(rest)
		assert.Truef(t, err == nil && c.Flags().NArg() <= 0, "%s: %v, %q", where, err, c.Flags().Args())
		given := map[string]bool{}
		namesOf(strings.Join(rest, " "), given)
		want := map[string]bool{"address": true, "auth": true, "tls-cert": true, "tls-key": true}
		assert.Truef(t, maps.Equal(given, want), "%s has the flags %v, not %v", where, given, want)
		assert.Equalf(t, "0.0.0.0:8443", c.Flag("address").Value.String(), "%s listens on", where)
	}
	for path, port := range map[string]string{containerfile: `^EXPOSE (\d+)$`, kubernetes: `\bcontainerPort: (\d+)`} {
		assert.Equalf(t, "8443", found(t, port, fileOf(t, path)), "%s: port", path)
	}
}

// namesOf finds the flags in a text.
func namesOf(text string, into map[string]bool) {
	for _, m := range aFlag.FindAllStringSubmatch(text, -1) {
		into[m[1]] = true
	}
}

// flagsOf are those of a command and of all below it.
func flagsOf(c *cobra.Command, into map[string]bool) {
	namesOf(c.Flags().FlagUsages()+c.PersistentFlags().FlagUsages(), into)
	for _, child := range c.Commands() {
		flagsOf(child, into)
	}
}

// variables are those that the program asks the environment for, and that Go's runtime does.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{"GOMEMLIMIT": true, "GOGC": true, "GOMAXPROCS": true}
	name := regexp.MustCompile(`"(PAWL_[A-Z_]+|DATABASE_URL|PG[A-Z]+)"`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range name.FindAllStringSubmatch(fileOf(t, path), -1) {
			known[m[1]] = true
		}
		return nil
	})
	require.NoError(t, err)
	return known
}

// foreign are flags of other programs, in what the packages' files and their page tell to call.
var foreign = []string{"read-only", "cap-drop", "security-opt", "build-arg", "from-env-file", "cert", "key", "for", "now", "system",
	"threshold", "root"}

var (
	aFlag     = regexp.MustCompile(`(?:^|[\s"'` + "`" + `])--([a-z][a-z-]+)`)
	aVariable = regexp.MustCompile(`\b(?:PAWL_[A-Z_]+|DATABASE_URL|GO(?:MEMLIMIT|GC|MAXPROCS)|PG[A-Z]+)\b`)
)

// The files of the packages and their page only name existing flags and variables.
func TestPackagesNameFlagsAndVariablesThatAreThere(t *testing.T) {
	flags := map[string]bool{}
	flagsOf(cli.CommandLine(), flags)
	known := variables(t)
	paths := []string{"docs/network.md"}
	err := filepath.WalkDir("deploy", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "tools" {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() && filepath.Ext(path) != ".go" && !slices.Contains([]string{"pawl.json", "dist", "lint"}, entry.Name()) {
			paths = append(paths, path)
		}
		return err
	})
	require.Truef(t, err == nil && len(paths) >= 6, "%v %v", paths, err)
	used := map[string]bool{}
	for _, path := range paths {
		text := fileOf(t, path)
		for _, m := range aFlag.FindAllStringSubmatch(text, -1) {
			used[m[1]] = true
			assert.Falsef(t, !flags[m[1]] && !slices.Contains(foreign, m[1]), "%s: there is no flag --%s", path, m[1])
		}
		for _, name := range aVariable.FindAllString(text, -1) {
			used[name] = true
			assert.Truef(t, known[name], "%s: nobody asks for the variable %s", path, name)
		}
	}
	for _, name := range []string{"address", "auth", "tls-cert", "tls-key", "DATABASE_URL", "GOMEMLIMIT"} {
		assert.Truef(t, used[name], "the check does not see %s in %q", name, slices.Sorted(maps.Keys(used)))
	}
}

// Supervisors wait longer than a node takes to stop, and their probes use existing paths.
func TestPackagesKnowHowANodeEndsAndAnswers(t *testing.T) {
	wait, err := time.ParseDuration(found(t, `^TimeoutStopSec=(\S+)$`, fileOf(t, unit)))
	assert.Truef(t, err == nil && wait > service.StopTimeout, "systemd waits for %v, %v", wait, err)
	pod := fileOf(t, kubernetes)
	grace, err := strconv.Atoi(found(t, `terminationGracePeriodSeconds: (\d+)`, pod))
	require.NoError(t, err)
	pause, err := strconv.Atoi(found(t, `preStop: \{sleep: \{seconds: (\d+)\}\}`, pod))
	assert.Truef(t, err == nil && time.Duration(grace-pause)*time.Second > service.StopTimeout,
		"Kubernetes waits for %d s, of which %d are a pause, %v", grace, pause, err)
	for _, probe := range regexp.MustCompile(`httpGet: \{path: (\S+), port: https, scheme: HTTPS\}`).FindAllStringSubmatch(pod, -1) {
		assert.Truef(t, slices.ContainsFunc(api.Routes(), func(r api.Route) bool { return r.Path == probe[1] && r.Grant == api.Public }),
			"%s does not answer a probe", probe[1])
	}
	assert.Equal(t, 3, strings.Count(pod, "Probe:"), "there probes")
}

// systemd itself takes the unit, and says how much the service may do that it need not.
func TestSystemdTakesTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze found: install it (package systemd) to check the unit")
	}
	root := t.TempDir()
	for from, to := range map[string]string{unit: "etc/systemd/system/pawl.service", "": "usr/local/bin/pawl"} {
		to = filepath.Join(root, to)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		text, mode := "#!/bin/sh\n", os.FileMode(0o755)
		if from != "" {
			text, mode = fileOf(t, from), 0o644
		}
		require.NoError(t, os.WriteFile(to, []byte(text), mode))
	}
	for _, args := range [][]string{
		{"verify", "--recursive-errors=no", "--man=no", "--root=" + root, "pawl.service"},
		{"security", "--offline=true", "--threshold=15", "--no-pager", "--root=" + root, "pawl.service"}, // in tenths, of 100
	} {
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
		assert.NoErrorf(t, err, "systemd-analyze %v \n%s", args, out)
		assert.Falsef(t, args[0] == "verify" && strings.Contains(string(out), "pawl.service"), "systemd-analyze %v says\n%s", args, out)
	}
}

package pawl

import (
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pawlhq/pawl/examples/order"
	"github.com/pawlhq/pawl/examples/order/provider"
	"github.com/pawlhq/pawl/internal/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// What docs/authentication.md shows of tickets is what a server answers.
func TestTicketsAreAsTheDocumentationSays(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl to ask it with")
	}
	text, err := os.ReadFile("docs/authentication.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## For a browser: tickets\n")
	if !found {
		t.Fatal("the section is not there")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	s, err := Start(t.Context(), Config{Workflows: []workflow.Source{order.Workflow(provider.New())}, Database: pgtest.EmptyURL(t),
		Address: "127.0.0.1:0", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, block := range blocks(t, section, "console") {
		assigned := ""
		for command, want := range commands(block) {
			command = strings.ReplaceAll(command, "localhost:8080", strings.TrimPrefix(s.URL(), "http://"))
			if strings.HasPrefix(command, "TICKET=") {
				assigned = command + "; "
				continue
			}
			ask(t, assigned+command, want)
		}
	}
}

package service

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox"
	"github.com/pawlhq/pawl/internal/usage"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/workflow"
)

// DefaultAddress is where a Service listens unless its Config says otherwise.
const DefaultAddress = "127.0.0.1:8080"

// Config is pawl.Config, where its fields are described: the compiler sees to it
// that they are the same.
type Config struct {
	Workflows []workflow.Source
	Database  string
	Listen    string
	Schema    string
	Address   string
	InFlight  engine.InFlightConfig
	Retention engine.RetentionConfig
	Source    string
	Sinks     []relay.Sink
	Rate      float64
	Inbox     map[string]InboxConsumer
	Sources   []inbox.Source
	Routes    func(s *Service) map[string]http.Handler
	Log       *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	if c.Schema == "" {
		c.Schema = schema.Default
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := checkAddress(c.Address); err != nil {
		return c, err
	}
	if err := schema.CheckName(c.Schema); err != nil {
		return c, &usage.Error{Err: err}
	}
	// Before a database is started: what is wrong with the program needs none.
	var mistakes []error
	var built []*workflow.Workflow
	for _, source := range c.Workflows {
		w, err := source.Build()
		if err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		built = append(built, w)
	}
	if len(mistakes) == 0 {
		mistakes = append(mistakes, c.checkInbox(built))
	}
	return c, errors.Join(mistakes...)
}

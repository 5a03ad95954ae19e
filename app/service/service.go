// Package service assembles engine, API, console, metrics and database into a running service.
package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/server"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/auth/ticket/keyset"
	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/metrics"
	"github.com/pawlhq/pawl/transitions"
)

// Service is a running engine with its HTTP interface and its database. It is safe for concurrent use.
type Service struct {
	config   Config
	server   *server.Server
	database *database
	engine   *engine.Engine
	api      *api.API
	kinds    kinds // credentials except tickets
	tickets  *ticket.Tickets
	ring     *keyset.Set // of ticket keys

	served   chan struct{} // closed when server has returned
	serveErr error         // set before served is closed
	stopOnce sync.Once
	stopErr  error
}

// Start connects to the database, migrates it, and serves. ctx bounds only the start. Call Stop when done.
//
// It returns a *usage.Error for an invalid configuration, the errors of the workflows and routes, and those of package schema, engine.New
// and engine.Start.
func Start(ctx context.Context, c Config) (*Service, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{config: c}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// Pool returns the pool of connections, for tables of the program's own. Stop closes it.
func (s *Service) Pool() *pgxpool.Pool { return s.database.pool }

func (s *Service) start(ctx context.Context) (err error) {
	c := s.config
	// Listen first, to report a used port at once.
	if s.server, err = server.Listen(ctx, c.listening()); err != nil {
		return err
	}
	if s.database, err = openDatabase(ctx, c.Database, c.Log); err != nil {
		return err
	}
	if err := s.database.migrate(ctx, c.Schema, c.Log); err != nil {
		return err
	}
	s.ring = c.ring(s.database)
	var recheck func(context.Context, *transitions.Command) error
	if !c.Auth.KeepScheduled {
		recheck = (&rechecker{keysOf(s.database, c.Schema), s.ring}).check
	}
	e, err := engine.New(engine.Config{Pool: s.database.pool, Listen: c.Listen, Workflows: c.Workflows, Schema: c.Schema,
		InFlight: c.InFlight, Retention: c.Retention, Sources: c.Sources, Source: c.Source, Sinks: c.Sinks, Log: c.Log,
		Tracer: c.Tracer, Recheck: recheck})
	if err != nil {
		return err
	}
	s.engine = e
	if err := e.Start(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

func (s *Service) connections() metrics.ConnectionStats {
	return metrics.ConnectionStats(s.server.Stats())
}

// serve creates the API and starts to answer requests.
func (s *Service) serve(ctx context.Context) (err error) {
	c, e := s.config, s.engine
	requests := metrics.NewRequests()
	list := make(map[string]api.Consumer, len(c.Inbox))
	for name, consumer := range c.Inbox {
		secrets := slices.Clone(consumer.Secrets)
		list[name] = api.Consumer{Tenant: consumer.Tenant, Keep: consumer.Keep, CheckHeaders: func(h http.Header) error {
			return signature.CheckHeaders(h, time.Now(), signature.Tolerance)
		}, Verify: func(h http.Header, body []byte) (string, error) {
			return signature.Verify(secrets, h, body, time.Now(), signature.Tolerance)
		}}
	}
	config := api.Config{Logger: c.Log, AccessLog: c.AccessLog, AccessLogSkipsHealth: c.AccessLogSkipsHealth, Origins: c.Network.Origins,
		PublicURL: c.Network.PublicURL,
		Limits:    api.Limits{Rate: c.Rate, CredentialRate: c.CredentialRate, Open: c.Network.TenantRequests, Wait: c.Network.MaxWait},
		Inbox:     list, Tracer: c.Tracer, KeepScheduled: c.Auth.KeepScheduled}
	refusals, err := s.authenticate(ctx, &config)
	if err != nil {
		return err
	}
	config.Metrics = metrics.Handler(metrics.New(e.Admin(), metrics.Config{Log: c.Log}), requests, refusals,
		metrics.Connections(s.connections), metrics.Memory(s.memory))
	if c.Routes != nil {
		config.Routes = c.Routes(s)
	}
	if err := s.addConsole(&config); err != nil {
		return err
	}
	if s.api, err = api.New(e, config); err != nil {
		return err
	}
	s.api.Start()
	s.served = make(chan struct{})
	go func() {
		defer close(s.served)
		if err := s.server.Serve(requests.Observe(s.api)); !errors.Is(err, http.ErrServerClosed) {
			s.serveErr = fmt.Errorf("serve: %w", err)
		}
	}()
	return nil
}

func (s *Service) memory() (m metrics.MemoryStats) {
	m.Size, m.Held, m.Refused = s.api.Memory()
	return m
}

// URL returns the URL of the service, such as "http://127.0.0.1:8080".
func (s *Service) URL() string {
	if s.config.Network.encrypted() {
		return "https://" + s.server.Addr().String()
	}
	return "http://" + s.server.Addr().String()
}

// Engine returns the engine.
func (s *Service) Engine() *engine.Engine { return s.engine }

// Wait returns nil when ctx ends, or an error when the service fails.
func (s *Service) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.served:
		return s.serveErr
	}
}

// Stop stops accepting requests, closes streams, waits for open requests, and then stops the engine, the pool and the private server. When
// ctx ends, it aborts open requests. Further calls return the result of the first.
func (s *Service) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	return s.stopErr
}

func (s *Service) stop(ctx context.Context) error {
	var errs []error
	if s.served != nil {
		// Shutdown closes the listener and waits for event streams, which only the API can end.
		shut := make(chan error, 1)
		go func() { shut <- s.server.Shutdown(ctx) }()
		streams := s.api.Stop(ctx)
		requests := <-shut
		if requests != nil {
			requests = errors.Join(fmt.Errorf("requests were cut off: %w", requests), s.server.Close())
		}
		if streams != nil {
			streams = fmt.Errorf("streams were cut off: %w", streams)
		}
		<-s.served
		errs = append(errs, errors.Join(requests, streams))
	} else if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	s.kinds.stop()
	if s.tickets != nil {
		s.tickets.Stop()
	}
	if s.ring != nil {
		s.ring.Stop()
	}
	if s.engine != nil {
		s.engine.Stop(ctx)
	}
	if s.database != nil {
		errs = append(errs, s.database.close())
	}
	return errors.Join(errs...)
}

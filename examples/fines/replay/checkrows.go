package replay

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/examples/fines/replay/fold"
	"github.com/pawlhq/pawl/schema"
	"github.com/pawlhq/pawl/transitions"
)

// stored is what the database has of a command: its answer, and the audit row of
// its transition. What is not there is zero.
type stored struct {
	Code              int
	Body              string
	Version, Position int64
	From, To          fold.State
	Name              string // of the transition, from the audit row
}

// Each look-up can only be an index probe, also right after the tables were
// filled, when their statistics lie.
const commandsSQL = `
SELECT coalesce(c.code, 0), coalesce(c.answer, ''), coalesce(c.version, 0),
	coalesce(a.position, 0), coalesce(a.from_state, ''), coalesce(a.to_state, ''), coalesce(a.transition, '')
FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS u(scope, key, n)
LEFT JOIN LATERAL (SELECT code, {pawl}.answer(command) AS answer, instance, version FROM {pawl}.command
	WHERE tenant = $1 AND scope = u.scope AND key = u.key LIMIT 1) c ON true
LEFT JOIN LATERAL (SELECT position, from_state, to_state, transition FROM {pawl}.audit
	WHERE tenant = $1 AND instance = c.instance AND version = c.version LIMIT 1) a ON true ORDER BY u.n`

// commands compares the page's events with their commands and audit rows.
func (c *checker) commands(ctx context.Context, page []fold.Case) error {
	var scopes, keys []string
	for _, want := range page {
		for _, o := range want.Outcomes {
			id := c.id(want.ID)
			if o.From == fold.None && o.Number == 1 {
				id = uuid.Nil // a creation
			}
			scopes = append(scopes, transitions.DefaultScope("fine", o.Transition, id))
			keys = append(keys, want.ID+"-"+strconv.Itoa(o.Number))
		}
	}
	found, err := read[stored](ctx, c, commandsSQL, scopes, keys)
	if err != nil {
		return err
	}
	for _, want := range page {
		c.compareCommands(&want, found[:len(want.Outcomes)])
		found = found[len(want.Outcomes):]
	}
	return nil
}

func (c *checker) compareCommands(want *fold.Case, found []stored) {
	version, state := int64(0), fold.None
	for i, o := range want.Outcomes {
		got := &found[i]
		if got.Code != 0 {
			c.found.Commands++
		}
		durable := fold.Outcome{Case: o.Case, Number: o.Number, Transition: o.Transition, From: state, To: state}
		switch {
		case o.Reason == fold.InvalidPayload || o.Reason == fold.InstanceNotFound:
			durable.Reason = o.Reason // which nothing of it is stored to tell
			if *got != (stored{}) {
				c.found.differ("case %s, event %d is malformed (%s), and its key has the answer %d", o.Case, o.Number, o.Reason, got.Code)
			}
		case o.Reason != "":
			durable.Reason = reasonOf(transitions.Reply{Receipt: transitions.Receipt{Status: got.Code, Body: []byte(got.Body)}})
			if got.Code == 0 || durable.Reason != o.Reason || got.Version != 0 {
				c.found.differ("case %s, event %d has the answer %d %q, version %d; the fold refuses it: %s",
					o.Case, o.Number, got.Code, durable.Reason, got.Version, o.Reason)
			}
		default:
			version++
			durable.Transition, durable.From, durable.To = got.Name, got.From, got.To
			state = durable.To
			if got.Version != version || durable != o || got.Position < 1 {
				c.found.differ("case %s, event %d is version %d, %q from %q to %q at position %d; the fold says version %d, %q from %q to %q",
					o.Case, o.Number, got.Version, got.Name, got.From, got.To, got.Position, version, o.Transition, o.From, o.To)
			}
		}
		c.line = durable.AppendLine(c.line[:0])
		c.trace.Write(c.line) // a hash never fails
	}
}

// Every transition of the workflow has one event, the one that each has.
const totalsSQL = `
SELECT coalesce((SELECT head FROM {pawl}.log WHERE tenant = $1), 0), i.*, c.*, a.*, o.*, x.*
FROM (SELECT count(*), coalesce(sum(version), 0)::bigint FROM {pawl}.instance WHERE tenant = $1) i,
	(SELECT count(*) FROM {pawl}.command WHERE tenant = $1) c,
	(SELECT count(*), count(DISTINCT position), coalesce(min(position), 1), coalesce(max(position), 0) FROM {pawl}.audit WHERE tenant = $1) a,
	(SELECT count(*), count(DISTINCT position), coalesce(min(position), 1), coalesce(max(position), 0) FROM {pawl}.outbox WHERE tenant = $1) o,
	(SELECT count(*) FROM {pawl}.outbox o CROSS JOIN LATERAL (SELECT 1 FROM {pawl}.audit a
		WHERE a.tenant = $1 AND a.instance = o.instance AND a.version = o.version AND a.position = o.position
		AND a.transition = o.transition AND a.to_state = o.state LIMIT 1) a
		WHERE o.tenant = $1) x`

// totals compares the tables as wholes, so that nothing is there besides what
// the cases and commands need.
func (c *checker) totals(ctx context.Context) error {
	var head, instances, versions, commands, pairs int64
	var audit, outbox [4]int64 // rows, positions, first, last
	err := c.Database.QueryRow(ctx, schema.In(c.Schema, totalsSQL), c.Tenant).Scan(&head, &instances, &versions, &commands,
		&audit[0], &audit[1], &audit[2], &audit[3], &outbox[0], &outbox[1], &outbox[2], &outbox[3], &pairs)
	if err != nil {
		return fmt.Errorf("replay: count rows: %w", err)
	}
	c.found.Head = head
	for _, total := range []struct {
		what      string
		got, want int64
	}{
		{"the log's head", head, c.accepted},
		{"cases in the database", instances, c.found.Cases},
		{"the sum of all versions", versions, c.accepted},
		{"commands in the database", commands, c.found.Commands},
		{"transitions with their event", pairs, c.accepted},
	} {
		if total.got != total.want {
			c.found.differ("%s: %d, want %d", total.what, total.got, total.want)
		}
	}
	c.positions("audit rows", audit)
	c.positions("events", outbox)
	return nil
}

// positions compares how many rows there are, with how many positions, from which to
// which.
func (c *checker) positions(what string, got [4]int64) {
	if want := [4]int64{c.accepted, c.accepted, 1, c.accepted}; got != want {
		c.found.differ("%s: %d with %d positions from %d to %d, want %d from 1", what, got[0], got[1], got[2], got[3], c.accepted)
	}
}

// chains verifies every audit chain of the tenant.
func (c *checker) chains(ctx context.Context) error {
	v, err := c.Verifier.Verify(ctx, c.Tenant, uuid.Nil)
	if err != nil {
		return fmt.Errorf("replay: verify: %w", err)
	}
	c.found.Chains, c.found.Rows = v.Instances, v.Entries
	for _, b := range v.Broken {
		c.found.differ("the chain of %s is broken at version %d: %s", b.Instance, b.Version, b.Reason)
	}
	if v.Instances != c.found.Cases || v.Entries != c.accepted {
		c.found.differ("%d chains with %d rows were verified, want %d with %d", v.Instances, v.Entries, c.found.Cases, c.accepted)
	}
	return nil
}

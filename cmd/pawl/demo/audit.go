package demo

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// audit is the chapter about whether the past can be changed unseen.
func (s *story) audit(ctx context.Context) error {
	s.title("The audit chain")
	instance, err := member(s.answers["fine"].body, "instance")
	if err != nil {
		return s.failed(err)
	}
	verify := get("/v1/ops/verify")
	if err := s.play(ctx, []exchange{{
		tell: "Every transition has an audit row that carries the hash of the one before. Is every\n" +
			"chain whole, and is the log without a gap?",
		request: verify, status: 200,
		checks: []check{has("intact", true, "")},
	}}); err != nil {
		return err
	}
	s.narrate("Somebody with access to the database rewrites the past: it was not the officer who\nposted the notice.")
	if err := s.rewrite(ctx, instance, "somebody else"); err != nil {
		return s.failed(err)
	}
	if err := s.play(ctx, []exchange{{
		tell:    "The chain says where.",
		request: verify, status: 200,
		checks: []check{has("intact", false, ""), brokenAt(instance)},
	}}); err != nil {
		return err
	}
	s.narrate("Put back what was there, so that you find everything in order.")
	if err := s.rewrite(ctx, instance, "local"); err != nil {
		return s.failed(err)
	}
	return s.play(ctx, []exchange{{
		tell:    "Once more.",
		request: verify, status: 200,
		checks: []check{has("intact", true, "")},
	}})
}

// tampered is the version whose audit row is changed.
const tampered = 2

// rewrite changes the actor of an audit row behind Pawl's back.
func (s *story) rewrite(ctx context.Context, instance, actor string) error {
	table := pgx.Identifier{s.stage.schema, "audit"}.Sanitize()
	s.sent("UPDATE %s SET actor = '%s' WHERE instance = '%s' AND version = %d", table, actor, instance, tampered)
	tag, err := s.stage.pool.Exec(ctx, "UPDATE "+table+" SET actor = $1 WHERE instance = $2 AND version = $3", actor, instance, tampered)
	if err != nil {
		return fmt.Errorf("change an audit row: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return fmt.Errorf("%d audit rows were changed, and one should be", tag.RowsAffected())
	}
	return nil
}

// brokenAt asks that exactly the changed row is reported.
func brokenAt(instance string) check {
	says := fmt.Sprintf("found: the row of version %d", tampered)
	return check{says, func(_ *story, a answer) error {
		text, err := member(a.body, "broken")
		if err != nil {
			return err
		}
		var broken []struct {
			Instance string `json:"instance"`
			Version  int64  `json:"version"`
		}
		if err := json.Unmarshal([]byte(text), &broken); err != nil {
			return err
		}
		if len(broken) != 1 || broken[0].Instance != instance || broken[0].Version != tampered {
			return fmt.Errorf("version %d of %s was changed, and found was %s", tampered, instance, text)
		}
		return nil
	}}
}

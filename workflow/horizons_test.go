package workflow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/workflow"
)

func keeping(h workflow.Horizons) *workflow.Definition[struct{}] {
	return workflow.Define("w", 1, workflow.Start("begin", "end", func(*workflow.Call, *struct{}, workflow.None) error { return nil })).
		Final("end").Keep(h)
}

func TestHorizonsAreNoPartOfWhatADefinitionSays(t *testing.T) {
	t.Parallel()
	plain, err := keeping(workflow.Horizons{}).Build()
	if err != nil {
		t.Fatal(err)
	}
	other, err := keeping(workflow.Horizons{Replay: time.Hour, Tombstone: workflow.Forever}).Build()
	if err != nil {
		t.Fatal(err)
	}
	if plain.Hash != other.Hash {
		t.Error("the hash depends on the horizons")
	}
	if other.Horizons.Replay != time.Hour {
		t.Errorf("got %+v", other.Horizons)
	}
}

func TestResolvedHorizonsHaveEveryDefault(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct{ declared, want workflow.Horizons }{
		{workflow.Horizons{}, workflow.Horizons{Replay: day, MaxReplay: 30 * day, Tombstone: 30 * day, MaxTombstone: 365 * day}},
		{workflow.Horizons{Replay: 40 * day, Tombstone: 400 * day},
			workflow.Horizons{Replay: 40 * day, MaxReplay: 40 * day, Tombstone: 400 * day, MaxTombstone: 400 * day}},
		{workflow.Horizons{Tombstone: workflow.Forever, History: day},
			workflow.Horizons{Replay: day, MaxReplay: 30 * day, Tombstone: workflow.Forever, MaxTombstone: workflow.Forever, History: day}},
	} {
		if got := c.declared.Resolve(day); got != c.want {
			t.Errorf("%+v: got %+v", c.declared, got)
		}
	}
}

func TestHorizonsThatCannotBeAreMistakes(t *testing.T) {
	t.Parallel()
	for says, h := range map[string]workflow.Horizons{
		"Replay, or its Max, is negative":    {Replay: -1},
		"Tombstone, or its Max, is negative": {MaxTombstone: -1},
		"History, or its Max, is negative":   {History: -1},
		"Replay is shorter than a micro":     {Replay: 999},
		"History is shorter than a micro":    {History: 1},
		"Replay is 2h0m0s, and its Max":      {Replay: 2 * time.Hour, MaxReplay: time.Hour},
		"Tombstone is 720h0m0s, and its Max": {MaxTombstone: time.Hour},
	} {
		_, err := keeping(h).Build()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v", h, err)
		}
	}
}

func TestAnActionKeepsItsAnswerForLongerAndNeverForANegativeTime(t *testing.T) {
	t.Parallel()
	run := func(times ...time.Duration) (workflow.Outcome, error) {
		w, err := workflow.Define("w", 1, workflow.Start("begin", "end", func(c *workflow.Call, _ *struct{}, _ workflow.None) error {
			for _, d := range times {
				c.KeepAnswer(d)
			}
			return nil
		})).Final("end").Build()
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.Steps[0].Decode(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.Steps[0].Run(workflow.Facts{}, nil, p)
	}
	if out, err := run(time.Hour, time.Minute); err != nil || out.KeepAnswer != time.Hour {
		t.Errorf("got %s, %v", out.KeepAnswer, err)
	}
	if _, err := run(-1); workflow.CodeOf(err) != workflow.Internal {
		t.Errorf("a negative time: %v", err)
	}
}

func TestTheBoundOfTheDataIsNoPartOfTheHash(t *testing.T) {
	t.Parallel()
	plain, err := keeping(workflow.Horizons{}).Build()
	if err != nil {
		t.Fatal(err)
	}
	if bounded, err := keeping(workflow.Horizons{}).MaxData(100).Build(); err != nil || bounded.Hash != plain.Hash {
		t.Errorf("the hash depends on the bound: %v", err)
	}
}

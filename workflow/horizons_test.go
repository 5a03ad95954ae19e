package workflow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/workflow"
)

func keeping(h workflow.Horizons) *workflow.Definition[struct{}] {
	return workflow.Define("w", 1, workflow.Start("begin", "end", func(*workflow.Call, *struct{}, workflow.None) error { return nil })).
		Final("end").Keep(h)
}

func TestHorizonsAreNoPartOfWhatADefinitionSays(t *testing.T) {
	t.Parallel()
	plain, err := keeping(workflow.Horizons{}).Build()
	require.NoError(t, err)
	other, err := keeping(workflow.Horizons{Replay: time.Hour, Tombstone: workflow.Forever}).Build()
	require.NoError(t, err)
	assert.Equal(t, other.Hash, plain.Hash, "the hash depends on the horizons")
	assert.Equalf(t, time.Hour, other.Horizons.Replay, "got %+v", other.Horizons)
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
		assert.Equalf(t, c.want, c.declared.Resolve(day), "%+v", c.declared)
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
		assert.ErrorContainsf(t, err, says, "%+v", h)
	}
}

func TestRetention_FromAction(t *testing.T) {
	t.Parallel()
	run := func(times ...time.Duration) (workflow.Outcome, error) {
		w, err := workflow.Define("w", 1, workflow.Start("begin", "end", func(c *workflow.Call, _ *struct{}, _ workflow.None) error {
			for _, d := range times {
				c.KeepAnswer(d)
			}
			return nil
		})).Final("end").Build()
		require.NoError(t, err)
		p, err := w.Steps[0].Decode(nil)
		require.NoError(t, err)
		return w.Steps[0].Run(workflow.Facts{}, nil, p)
	}
	out, err := run(time.Hour, time.Minute)
	assert.Truef(t, err == nil && out.KeepAnswer == time.Hour, "got %s, %v", out.KeepAnswer, err)
	_, err = run(-1)
	assert.Equalf(t, workflow.Internal, workflow.CodeOf(err), "a negative time: %v", err)
}

func TestTheBoundOfTheDataIsNoPartOfTheHash(t *testing.T) {
	t.Parallel()
	plain, err := keeping(workflow.Horizons{}).Build()
	require.NoError(t, err)
	bounded, err := keeping(workflow.Horizons{}).MaxData(100).Build()
	assert.Truef(t, err == nil && bounded.Hash == plain.Hash, "the hash depends on the bound: %v", err)
}

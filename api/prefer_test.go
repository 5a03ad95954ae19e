package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPreferWait(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "wait=5": 5 * time.Second, "WAIT = 5": 5 * time.Second, `wait="5"`: 5 * time.Second,
		"respond-async, wait=7": 7 * time.Second, "wait=7;x=y": 7 * time.Second, "wait=3600": time.Minute,
		"wait=-1": 0, "wait=abc": 0, "wait": 0, "wait=1.5": 0, "wait=99999999999999999999": 0,
		"wait=abc, wait=4": 4 * time.Second, "wait=0": 0,
	} {
		assert.Equalf(t, want, preferredWait(requestWith("Prefer", value), time.Minute), "Prefer %q", value)
	}
}

func TestPreferRespondAsync(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "respond-async": true, "Respond-Async": true, "wait=5, respond-async": true, "respond-async;q=1": true,
		"wait=5": false, "respond": false, "x=respond-async": false,
	} {
		assert.Equalf(t, want, prefersAsync(requestWith("Prefer", value)), "Prefer %q", value)
	}
}

func FuzzPreferWaitIsBounded(f *testing.F) {
	for _, s := range []string{"wait=5", "respond-async;wait=1,wait=", `wait="`, "=,;", "wait=18446744073709551615"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := preferredWait(requestWith("Prefer", s), time.Minute)
		assert.Truef(t, got >= 0 && got <= time.Minute, "Prefer %q: %v", s, got)
	})
}

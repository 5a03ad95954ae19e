package eventlog

import (
	"bytes"
	"reflect"
	"testing"
)

func TestGeneratedLogIsTheSameForTheSameSeed(t *testing.T) {
	long, err := collect(t, Generate(7, 300))
	if err != nil {
		t.Fatal(err)
	}
	short, err := collect(t, Generate(7, 100))
	if err != nil {
		t.Fatal(err)
	}
	if len(long) != 300 || !reflect.DeepEqual(long[:100], short) {
		t.Error("a shorter log is not the beginning of a longer one")
	}
	other, err := collect(t, Generate(8, 100))
	if err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(short, other) {
		t.Error("another seed makes the same log")
	}
}

// A made-up log is in order, as the real one is, and can be written and read.
func TestGeneratedLogCanBeRead(t *testing.T) {
	want, err := collect(t, Generate(3, 2000))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range want {
		for i, e := range c.Events {
			seen[e.Transition] = true
			if i > 0 && e.On < c.Events[i-1].On {
				t.Errorf("case %s, event %d is dated %s, before %s", c.ID, e.Number, e.On, c.Events[i-1].On)
			}
		}
	}
	for _, a := range activities {
		if !seen[a.transition] {
			t.Errorf("no %s in 2,000 cases", a.name)
		}
	}
	var log bytes.Buffer
	if err := Write(&log, Generate(3, 2000)); err != nil {
		t.Fatal(err)
	}
	got, err := collect(t, Read(&log))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the log is read as another one: %v", err)
	}
}

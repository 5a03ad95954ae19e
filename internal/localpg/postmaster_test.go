package localpg

import "testing"

func TestParsePidFile(t *testing.T) {
	const data = "/d"
	full := "4711\n/d\n1700000000\n5433\n\n127.0.0.1\n  123 456\nready   \n"
	for _, c := range []struct {
		name, content string
		want          postmaster
		bad           bool
	}{
		{"complete", full, postmaster{data, 4711, 5433, true}, false},
		{"starting", "4711\n/d\n1700000000\n5433\n\n127.0.0.1\n  123 456\nstarting\n", postmaster{data, 4711, 5433, false}, false},
		{"no state yet", "4711\n/d\n1700000000\n5433\n\n", postmaster{data, 4711, 5433, false}, false},
		{"port half-written", "4711\n/d\n1700000000\n54", postmaster{data, 4711, 0, false}, false},
		{"process number only", "4711", postmaster{data, 4711, 0, false}, false},
		{"empty", "", postmaster{}, true},
		{"single-user mode", "-4711\n/d\n", postmaster{}, true},
		{"no port", "4711\n/d\n1700000000\nx\n\n", postmaster{}, true},
	} {
		got, err := parsePidFile(data, c.content)
		if got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: got %+v, %v; want %+v, error %v", c.name, got, err, c.want, c.bad)
		}
	}
}

func FuzzParsePidFile(f *testing.F) {
	f.Add("4711\n/d\n1700000000\n5433\n\n127.0.0.1\n  123 456\nready   \n")
	f.Add("-1\n")
	f.Fuzz(func(t *testing.T, content string) {
		pm, err := parsePidFile("/d", content)
		if err == nil && pm.pid <= 0 {
			t.Errorf("%q: process %d, which would be signalled as a group", content, pm.pid)
		}
		if pm.ready && pm.port <= 0 {
			t.Errorf("%q: ready on port %d", content, pm.port)
		}
	})
}

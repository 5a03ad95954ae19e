package console_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/chromium"
	"github.com/pawlhq/pawl/transitions"
)

// BenchmarkFromCommitToScreen commits on one node what a browser looks at on another, while other instances move at the rate that is
// named, and tells how long after the commit it is on the screen.
func BenchmarkFromCommitToScreen(b *testing.B) {
	const rate = 500
	s := newStand(b)
	other := s.node(func(c *service.Config) { c.Auth.Keys = true })
	id, background := s.filed("A-1", 10), s.filed("A-2", 10)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		done := 0
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-tick.C:
				for _, r := range s.Engine().SubmitMany(b.Context(), notes(background, rate/50)) {
					if r.Err == nil {
						done++
					}
				}
			case <-stop:
				stopped <- done
				return
			}
		}
	}()
	p := s.open(other.URL(), s.key("boss", everything), "/instances/"+id.String())
	p.WaitText("#live", "live")
	chromium.Eval[any](p, `(() => {
		globalThis.seen = {};
		const look = () => { for (const e of document.querySelectorAll('#transitions > li')) globalThis.seen[e.id] ??= Date.now(); };
		new MutationObserver(look).observe(document.querySelector('main'), {childList: true, subtree: true});
	})()`)
	var took []float64
	began := time.Now()
	for b.Loop() {
		version := s.do(id, "note", "ann", `{"note":"x"}`).Version
		committed := float64(time.Now().UnixMicro()) / 1000
		seen := 0.0
		await.Eventually(b, "it is on the screen", func() bool {
			seen = chromium.Eval[float64](p, fmt.Sprintf(`globalThis.seen['v%d'] ?? 0`, version))
			return seen > 0
		})
		took = append(took, max(0, seen-committed))
	}
	close(stop)
	n := <-stopped
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "commits/s-beside")
}

// BenchmarkPages measures the pages of an instance with 100,000 transitions, and related pages.
func BenchmarkPages(b *testing.B) {
	s := newStand(b)
	id := s.longLived(b, 100_000)
	v := s.visitor(s.key("boss", everything, "boss"))
	of := "/console/instances/" + id.String()
	for name, path := range map[string]string{"instance": of, "half-way": of + "?upto=50000", "then": of + "?version=50000",
		"diagram": of + "/diagram?v=100001", "overview": "/console/", "log": "/console/log", "list": "/console/instances?workflow=claim"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				v.get(path).want(200)
			}
		})
	}
}

// longLived makes a claim of so many transitions, in thousands.
func (s *stand) longLived(b *testing.B, n int) uuid.UUID {
	b.Helper()
	id := s.filed("A-1", 10)
	for range n / 1000 {
		for _, r := range s.Engine().SubmitMany(b.Context(), notes(id, 1000)) {
			require.NoError(b, r.Err)
		}
	}
	return id
}

func notes(id uuid.UUID, n int) []transitions.Command {
	list := make([]transitions.Command, n)
	for i := range list {
		list[i] = transitions.Command{Instance: id, Transition: "note", Key: uuid.NewString(), Actor: "ann", Roles: []string{transitions.AnyRole},
			Payload: []byte(`{"note":"x"}`)}
	}
	return list
}

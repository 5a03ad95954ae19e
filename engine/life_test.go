package engine_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/engine"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// life is one execution of a key, and what becomes of it. It is the model that
// the engine is held against.
type life struct {
	request   string
	hours     int // for which its action keeps the answer at least
	inFlight  bool
	answer    transitions.Receipt
	end       time.Time     // when the answer was given
	replay    time.Duration // from then
	tombstone time.Duration // after that; workflow.Forever
}

func (l *life) expires() time.Time { return l.end.Add(l.replay) }

// forgettable reports whether the key may be new again: it is as soon as
// retention has come by.
func (l *life) forgettable(now time.Time) bool {
	return !l.inFlight && l.tombstone != workflow.Forever && !now.Before(l.expires().Add(l.tombstone))
}

// promised is what docs/protocol-in-flight.md promises to an attempt with a key whose last
// life is l, nil for none. Of two promises either may be kept.
func promised(l *life, request string, now time.Time) []string {
	switch {
	case l == nil:
		return []string{"new"}
	case request != l.request && l.forgettable(now):
		return []string{"new", "reused"}
	case request != l.request:
		return []string{"reused"}
	case l.inFlight:
		return []string{"in flight"}
	case now.Before(l.expires()):
		return []string{"replay"}
	case l.forgettable(now):
		return []string{"new", "expired"}
	}
	return []string{"expired"}
}

// outcome is what an attempt got, in the same words.
func outcome(r transitions.Reply) string {
	switch code := workflow.CodeOf(r.Err); {
	case code == workflow.KeyReused:
		return "reused"
	case code == workflow.KeyExpired:
		return "expired"
	case r.Err != nil:
		return r.Err.Error()
	case !r.Receipt.Replayed:
		return "new"
	case r.Receipt.InFlight():
		return "in flight"
	}
	return "replay"
}

// world is a tenant with some keys, on two engines, while retention runs.
type world struct {
	*testing.T
	tenant string
	random *rand.Rand
	pool   *pgxpool.Pool
	clock  *still
	nodes  []*engine.Engine
	chores *chores
	keys   []string
	about  map[string]uuid.UUID // the instance of a key that takes time
	lives  map[string]*life     // the last one
	done   map[string]int       // how often a key was executed and not refused
}

// chores lets the activities of all worlds continue on request.
type chores struct {
	mu    sync.Mutex
	begun map[string]chan chan struct{} // by tenant and text
}

func (c *chores) of(name string) chan chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun[name] == nil {
		c.begun[name] = make(chan chan struct{}, 100)
	}
	return c.begun[name]
}

// definition is a workflow with commands of both kinds, those that are done at once and
// those that take time.
func (c *chores) definition() *workflow.Definition[letter] {
	note := func(call *workflow.Call, l *letter, w words) error {
		if w.Text == "refuse" {
			return workflow.Refuse("not that")
		}
		call.KeepAnswer(time.Duration(w.Hours) * time.Hour)
		return nil
	}
	return workflow.Define("chore", 1,
		workflow.Start("note", "open", note),
		workflow.Do("run", workflow.From("open"), "running", "open",
			func(ctx context.Context, a *workflow.Attempt, _ letter, w words) (words, error) {
				goOn := make(chan struct{})
				c.of(a.Tenant + a.Key) <- goOn
				select {
				case <-goOn:
					return w, nil
				case <-ctx.Done():
					return w, ctx.Err()
				}
			}, note).OrElse("open", nothing[letter, workflow.Failure]),
	).Keep(workflow.Horizons{Replay: time.Hour, Tombstone: 2 * time.Hour, MaxTombstone: workflow.Forever})
}

func (w *world) pick(n int) int { return w.random.IntN(n) }

// attempt is one that a random caller makes.
type attempt struct {
	transitions.Command
	request string
	hours   int // of KeepAnswer
	reply   transitions.Reply
}

func (w *world) attempt() *attempt {
	key := w.keys[w.pick(len(w.keys))]
	texts := []string{"a", "a", "a", "a", "b", "refuse"}
	a := &attempt{hours: []int{0, 0, 3}[w.pick(3)]}
	text := texts[w.pick(len(texts))]
	a.request = fmt.Sprintf(`{"text":%q,"hours":%d}`, text, a.hours)
	a.Command = transitions.Command{Tenant: w.tenant, Key: key, Workflow: "chore", Transition: "note", Payload: []byte(a.request),
		Options: transitions.Options{Scope: "s", Replay: []time.Duration{0, 0, 10 * time.Minute, 5 * time.Hour}[w.pick(4)],
			Tombstone: []time.Duration{0, 0, time.Minute, 5 * time.Hour, workflow.Forever}[min(w.pick(30), 4)]}}
	if w.pick(30) > 2 && a.Tombstone == workflow.Forever {
		a.Tombstone = 0 // else nothing would be forgotten soon
	}
	if id, takesTime := w.about[key]; takesTime {
		a.Transition, a.Instance = "run", id
	}
	return a
}

// begins is the life that an attempt begins which is new.
func (w *world) begins(a *attempt) *life {
	l := &life{request: a.request, hours: a.hours, replay: time.Hour, tombstone: 2 * time.Hour, inFlight: true}
	if a.Replay > 0 {
		l.replay = a.Replay
	}
	if a.Tombstone > 0 {
		l.tombstone = a.Tombstone
	}
	if !a.reply.Receipt.InFlight() {
		w.ends(a.Key, l, a.reply.Receipt)
	}
	return l
}

func (w *world) ends(key string, l *life, answer transitions.Receipt) {
	l.inFlight, l.answer, l.end = false, answer, w.clock.Now()
	if !answer.Refused() {
		l.replay = max(l.replay, time.Duration(l.hours)*time.Hour)
		w.done[key]++
	}
}

// round is many attempts at once, at one time.
func (w *world) round() {
	attempts := make([]*attempt, 12+w.pick(12))
	var work sync.WaitGroup
	for i := range attempts {
		a, node := w.attempt(), w.nodes[w.pick(len(w.nodes))]
		attempts[i] = a
		work.Go(func() { a.reply.Receipt, a.reply.Err = node.Submit(w.Context(), a.Command) })
	}
	work.Wait()
	now := w.clock.Now()
	before := maps.Clone(w.lives)
	for _, a := range attempts {
		if outcome(a.reply) != "new" {
			continue
		}
		if w.lives[a.Key] != before[a.Key] {
			w.Fatalf("key %s was executed twice at once", a.Key)
		}
		w.lives[a.Key] = w.begins(a)
	}
	for _, a := range attempts {
		old, l, got := before[a.Key], w.lives[a.Key], outcome(a.reply)
		allowed := promised(old, a.request, now)
		if l != old && got != "new" { // whoever came after
			allowed = append(allowed, promised(l, a.request, now)...)
		}
		if !slices.Contains(allowed, got) {
			w.Fatalf("key %s at %s, last life %+v: %s got %q, promised is %q", a.Key, now, old, a.request, got, allowed)
		}
		if got == "replay" && string(a.reply.Receipt.Body) != string(l.answer.Body) {
			w.Fatalf("key %s: replayed %s, the answer was %s", a.Key, a.reply.Receipt.Body, l.answer.Body)
		}
	}
}

// settle waits until what takes time has begun, and ends some of it.
func (w *world) settle() {
	for key, l := range w.lives {
		if !l.inFlight || w.pick(3) > 0 {
			continue
		}
		effect := transitions.EffectKey(transitions.Ref{Tenant: w.tenant, Scope: "s", Key: key})
		select {
		case goOn := <-w.chores.of(w.tenant + effect):
			close(goOn)
		case <-time.After(time.Minute):
			w.Fatalf("key %s: its activity has not begun", key)
		}
		receipt, err := w.nodes[w.pick(len(w.nodes))].Await(w.Context(), transitions.Ref{Tenant: w.tenant, Scope: "s", Key: key})
		if err != nil {
			w.Fatalf("key %s: %v", key, err)
		}
		w.ends(key, l, receipt)
	}
}

// look asks how every key stands.
func (w *world) look() {
	now := w.clock.Now()
	for _, key := range w.keys {
		l := w.lives[key]
		r, err := w.nodes[w.pick(len(w.nodes))].Read().Command(w.Context(), transitions.Ref{Tenant: w.tenant, Scope: "s", Key: key})
		code := workflow.CodeOf(err)
		ok := err == nil && l != nil && r.InFlight() == l.inFlight && (l.inFlight || now.Before(l.expires()) && r.Code == l.answer.Status)
		switch {
		case l == nil, code == workflow.CommandNotFound:
			ok = code == workflow.CommandNotFound && (l == nil || l.forgettable(now))
		case code == workflow.KeyExpired:
			ok = !l.inFlight && !now.Before(l.expires())
		}
		if !ok {
			w.Fatalf("key %s at %s, last life %+v: its status is %+v, %v", key, now, l, r, err)
		}
	}
}

// skip moves the clock, in half of the cases to the end of a retention period.
func (w *world) skip() {
	by := []time.Duration{0, time.Minute, time.Hour, 4 * time.Hour}[w.pick(4)]
	l := w.lives[w.keys[w.pick(len(w.keys))]]
	if l != nil && !l.inFlight && w.pick(2) == 0 {
		edge := l.expires()
		if l.tombstone != workflow.Forever && w.pick(2) == 0 {
			edge = edge.Add(l.tombstone)
		}
		if to := edge.Add(time.Duration(w.pick(3)-1) * time.Microsecond).Sub(w.clock.Now()); to > 0 {
			by = to
		}
	}
	w.clock.skip(by)
}

// A key never executes twice before its tombstone is forgotten, and every late
// duplicate gets what the protocol promises, whatever expires, and whatever
// retention does meanwhile.
func TestLateDuplicates(t *testing.T) {
	t.Parallel()
	pool, clock := database(t), newStill()
	exec(t, pool, "SELECT pawl.make_partitions(until => now() + interval '60 days')") // for where the clock goes
	c := &chores{begun: map[string]chan chan struct{}{}}
	nodes := []*engine.Engine{newEngine(t, pool, clock.set, with(c.definition())), newEngine(t, pool, clock.set, with(c.definition()))}
	ctx, stop := context.WithCancel(t.Context())
	var retention sync.WaitGroup
	defer retention.Wait()
	defer stop()
	for range 2 {
		retention.Go(func() {
			for ctx.Err() == nil {
				_, err := pool.Exec(ctx, retainSQL, 1+rand.IntN(20), clock.Now())
				assert.Falsef(t, err != nil && ctx.Err() == nil, "retention: %v", err)
			}
		})
	}
	base, begun := rand.Uint64(), time.Now()
	news := map[string]int{}
	worlds := uint64(8)
	if testing.Short() { // make test-long has them all
		worlds = 2
	}
	for n := range worlds {
		if time.Since(begun) > 8*time.Second {
			break
		}
		w := &world{T: t, tenant: fmt.Sprint("w", n), random: rand.New(rand.NewPCG(base, n)), pool: pool, clock: clock, nodes: nodes, chores: c,
			about: map[string]uuid.UUID{}, lives: map[string]*life{}, done: map[string]int{}}
		t.Logf("seed %d, %d", base, n)
		w.play()
		for _, times := range w.done {
			news[fmt.Sprint(min(times, 5))]++
		}
	}
	t.Logf("keys by how often they were executed: %v", news)
}

func (w *world) play() {
	for i := range 8 {
		key := fmt.Sprint("k", i)
		w.keys = append(w.keys, key)
		if i%2 == 0 {
			w.about[key] = submit(w, w.nodes[0], transitions.Command{Tenant: w.tenant, Workflow: "chore", Transition: "note", Key: "about " + key,
				Payload: []byte(`{"text":"x","hours":0}`)}).Instance
		}
	}
	for range 40 {
		w.round()
		w.settle()
		w.look()
		w.skip()
	}
	for _, key := range w.keys {
		if got := query[int](w, w.pool, "SELECT count(*) FROM pawl.audit WHERE tenant = $1 AND scope = 's' AND key = $2 AND transition IN "+
			"('note', 'run')", w.tenant, key); got != w.done[key] {
			w.Errorf("key %s was executed %d times, and the answers say %d", key, got, w.done[key])
		}
	}
}

package jwt

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pawlhq/pawl/internal/kernel/pause"
	"github.com/pawlhq/pawl/workflow"
)

// ForcedEvery is the time between two fetches that tokens with unknown keys cause.
const ForcedEvery = 30 * time.Second

const (
	fetchTimeout = 10 * time.Second
	retryEvery   = 30 * time.Second // where keys cannot be fetched
)

// ring has the keys, and keeps them fresh.
type ring struct {
	read    func(context.Context) ([]byte, error) // the JWK Set; nil where the keys are for good
	survive time.Duration
	log     *slog.Logger
	now     func() time.Time
	keys    atomic.Pointer[keySet] // nil before the first were read

	mu       sync.Mutex
	under    chan struct{} // closed at the end of the reading that is under way; nil for none
	forced   time.Time     // when an unknown key caused one
	got      time.Time     // when the keys were read last
	failure  error         // of the last reading
	reads    int64
	failures int64

	running sync.WaitGroup
	ctx     context.Context // of the readings, ended by stop
	stop    context.CancelFunc
}

func newRing(c *Config) *ring {
	r := &ring{survive: c.Survive, log: c.Log, now: time.Now}
	r.ctx, r.stop = context.WithCancel(context.Background())
	switch {
	case c.JWKS != "":
		r.read = func(ctx context.Context) ([]byte, error) { return download(ctx, c.Client, c.JWKS) }
	case c.File != "":
		r.read = func(context.Context) ([]byte, error) { return os.ReadFile(c.File) }
	}
	return r
}

func download(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxKeySet+1))
	if err == nil && len(text) > maxKeySet {
		err = fmt.Errorf("%s answers with more than %d bytes", address, maxKeySet)
	}
	return text, err
}

// set replaces the keys. What was signed with one that is no longer there has ended.
func (r *ring) set(text []byte) error {
	var before keySet
	if old := r.keys.Load(); old != nil {
		before = *old
	}
	keys, err := parseKeys(text, before)
	if err != nil {
		return err
	}
	r.keys.Store(&keys)
	for _, old := range before {
		if !slices.Contains(keys, old) {
			old.end()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = r.now()
	return nil
}

// find returns the key of a token, nil for none. An unknown one may be new, and makes the keys be read
// again; see ForcedEvery. Error: Unavailable where there are no keys, or they are too old.
func (r *ring) find(ctx context.Context, id string, a jose.SignatureAlgorithm) (*key, error) {
	for tries := 0; ; tries++ {
		keys, err := r.current()
		if err == nil {
			if k := keys.find(id, a); k != nil {
				return k, nil
			}
		}
		// What was under way may have begun before the key was there; so twice.
		if r.read == nil || tries == 2 || !r.force(ctx) {
			return nil, err
		}
	}
}

var errNoKeys = workflow.Errorf(workflow.Unavailable, "the keys of the identity provider cannot be fetched; try again later")

func (r *ring) current() (keySet, error) {
	keys := r.keys.Load()
	if keys == nil {
		return nil, errNoKeys
	}
	if r.read == nil {
		return *keys, nil
	}
	r.mu.Lock()
	old := r.failure != nil && r.now().Sub(r.got) > r.survive
	r.mu.Unlock()
	if old {
		return nil, errNoKeys
	}
	return *keys, nil
}

// holds reports whether a key is still one of those that are used.
func (r *ring) holds(k *key) bool {
	keys, err := r.current()
	for _, one := range keys {
		if one == k {
			return err == nil
		}
	}
	return false
}

// force waits until the keys are read, and reports false where they are not: it is too early.
func (r *ring) force(ctx context.Context) bool {
	r.mu.Lock()
	if r.under == nil {
		now := r.now()
		if !r.forced.IsZero() && now.Sub(r.forced) < ForcedEvery {
			r.mu.Unlock()
			return false
		}
		r.forced = now
	}
	under := r.begin()
	r.mu.Unlock()
	select {
	case <-under:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin reads the keys once, unless that is under way. The caller has mu.
func (r *ring) begin() <-chan struct{} {
	if r.under == nil {
		done := make(chan struct{})
		r.under = done
		r.running.Go(func() { r.refresh(done) })
	}
	return r.under
}

func (r *ring) refresh(done chan struct{}) {
	ctx, cancel := context.WithTimeout(r.ctx, fetchTimeout)
	defer cancel()
	text, err := r.read(ctx)
	if err == nil {
		err = r.set(text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	failed := r.failure
	r.reads++
	if r.failure = err; err != nil {
		r.failures++
	}
	switch {
	case err != nil && r.ctx.Err() == nil:
		r.log.Warn("auth: the keys of the identity provider cannot be read", "error", err, "last read", r.got, "used for", r.survive)
	case err == nil && failed != nil:
		r.log.Info("auth: the keys of the identity provider are read again")
	}
	r.under = nil
	close(done)
}

// keep reads the keys now and then, until stop. It returns when they were read once, or ctx has ended.
func (r *ring) keep(ctx context.Context, every time.Duration) {
	first := r.once()
	r.running.Go(func() {
		<-first
		for pause.For(r.ctx, r.next(every)) {
			<-r.once()
		}
	})
	select {
	case <-first:
	case <-ctx.Done():
	}
}

// once reads the keys, or waits for who does. The channel is closed at the end of that.
func (r *ring) once() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin()
}

// next is the time until the keys are read again.
func (r *ring) next(every time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return min(every, retryEvery)
	}
	return every
}

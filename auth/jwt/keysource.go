package jwt

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pawlhq/pawl/auth/internal/idp"
	"github.com/pawlhq/pawl/workflow"
)

// ForcedEvery is the minimum interval of fetches caused by unknown keys.
const ForcedEvery = 30 * time.Second

const (
	fetchTimeout = 10 * time.Second
	retryEvery   = 30 * time.Second // after a failed fetch
)

// keySource holds the current keys and refreshes them.
type keySource struct {
	read    func(context.Context) ([]byte, error) // reads the JWK Set; nil for static keys
	survive time.Duration
	log     *slog.Logger
	now     func() time.Time
	keys    atomic.Pointer[keySet] // nil before the first read

	mu       sync.Mutex
	under    chan struct{} // closed at the end of the read in progress; nil: none
	forced   time.Time     // last read caused by an unknown key
	got      time.Time     // last successful read
	failure  error         // of the last read
	reads    int64
	failures int64

	running sync.WaitGroup
	ctx     context.Context // of reads, cancelled by stop
	stop    context.CancelFunc
}

func newKeySource(c *Config) *keySource {
	r := &keySource{survive: c.Survive, log: c.Log, now: time.Now}
	r.ctx, r.stop = context.WithCancel(context.Background())
	switch {
	case c.JWKS != "":
		r.read = func(ctx context.Context) ([]byte, error) { return idp.Get(ctx, c.Client, c.JWKS) }
	case c.File != "":
		r.read = func(context.Context) ([]byte, error) { return os.ReadFile(c.File) }
	}
	return r
}

// set replaces the keys. Tokens signed with a removed key are rejected.
func (r *keySource) set(text []byte) error {
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

// find returns the key of a token, or nil. An unknown key may be new and causes a read; see ForcedEvery. Error: Unavailable without keys,
// or if they are too old.
func (r *keySource) find(ctx context.Context, id string, a jose.SignatureAlgorithm) (*key, error) {
	for tries := 0; ; tries++ {
		keys, err := r.current()
		if err == nil {
			if k := keys.find(id, a); k != nil {
				return k, nil
			}
		}
		// A read in progress may have started before the key was published, so try twice.
		if r.read == nil || tries == 2 || !r.force(ctx) {
			return nil, err
		}
	}
}

var errNoKeys = workflow.Errorf(workflow.Unavailable, "the keys of the identity provider cannot be fetched; try again later")

func (r *keySource) current() (keySet, error) {
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

// holds reports whether a key is in the current set.
func (r *keySource) holds(k *key) bool {
	keys, err := r.current()
	for _, one := range keys {
		if one == k {
			return err == nil
		}
	}
	return false
}

// force waits until the keys are read. It returns false if it is too early for another read.
func (r *keySource) force(ctx context.Context) bool {
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

// begin starts to read the keys unless a read is in progress. The caller holds mu.
func (r *keySource) begin() <-chan struct{} {
	if r.under == nil {
		done := make(chan struct{})
		r.under = done
		r.running.Go(func() { r.refresh(done) })
	}
	return r.under
}

func (r *keySource) refresh(done chan struct{}) {
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
		r.log.Info("auth: the keys of the identity provider can be read again")
	}
	r.under = nil
	close(done)
}

// once reads the keys or joins the read in progress. The channel is closed when it ends.
func (r *keySource) once() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begin()
}

// next returns the time until the next periodic read.
func (r *keySource) next(every time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return min(every, retryEvery)
	}
	return every
}

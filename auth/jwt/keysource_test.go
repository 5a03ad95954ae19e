package jwt_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/authtest"
	"github.com/pawlhq/pawl/auth/jwt"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/workflow"
)

// clock is a clock controlled by a test.
type clock struct {
	stopped time.Time // zero: running
	ahead   atomic.Int64
}

func (c *clock) now() time.Time {
	now := c.stopped
	if now.IsZero() {
		now = time.Now()
	}
	return now.Add(time.Duration(c.ahead.Load()))
}

func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }

// newRemote returns a verifier that has fetched once and only fetches again when forced.
func newRemote(t *testing.T, idp *authtest.Provider) (*jwt.Verifier, *clock) {
	t.Helper()
	c := configOf(idp)
	c.Refresh, c.Survive = 1000*time.Hour, 24*time.Hour
	v := newVerifier(t, c)
	moved := &clock{}
	v.SetNow(moved.now)
	v.Start(t.Context())
	return v, moved
}

// Keys rotate while tokens are signed and verified concurrently.
func TestKeysRotateUnderLoad(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, clock := newRemote(t, idp)
	var current atomic.Pointer[authtest.Key]
	current.Store(idp.Key)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var asked [8]atomic.Int64
	for i := range asked {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				token := current.Load().Sign(t, authtest.Claims(map[string]any{"n": n}))
				_, err := v.Verify(t.Context(), token)
				assert.NoError(t, err, "a good token is refused")
				asked[i].Add(1)
			}
		})
	}
	old := idp.Key
	for i := range 5 {
		// As with real providers, the next key is published, then used, then the old one is
		// removed. Odd keys are used at once, so that a token announces them.
		next := authtest.NewKey(t, fmt.Sprint("key ", i), jose.ES256)
		idp.Publish(old, next)
		if i%2 == 0 {
			v.Refresh()
		}
		current.Store(next)
		for i := range asked { // until no token of the old key is in use
			before := asked[i].Load()
			await.Eventually(t, "everybody has asked again", func() bool { return asked[i].Load() > before+2 })
		}
		idp.Publish(next)
		v.Refresh()
		old = next
		clock.move(jwt.ForcedEvery)
	}
	close(stop)
	all.Wait()
}

// A cached token is rejected when its key is removed.
func TestTokenEndsWithKey(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, _ := newRemote(t, idp)
	token := idp.Token(nil)
	p, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	v.Refresh()
	again, err := v.Verify(t.Context(), token)
	require.Truef(t, err == nil && again.Ended == p.Ended, "the keys are the same: %v", err)
	idp.Publish(idp.Key, authtest.NewKey(t, "next", jose.ES256))
	v.Refresh()
	select {
	case <-p.Ended:
		t.Error("what is open with the token ends while its key is there")
	default:
	}
	idp.Publish(authtest.NewKey(t, "next", jose.ES256))
	v.Refresh()
	await.Receive(t, "what is open with the token ends", p.Ended)
	wantRefused(t, v, token, auth.UnknownKey)
	idp.Publish(authtest.NewKey(t, "first", jose.ES256)) // same id, another key
	v.Refresh()
	wantRefused(t, v, token, auth.BadSignature)
}

// A key that is published twice ends once.
func TestDuplicateKeyEndsOnce(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, _ := newRemote(t, idp)
	for _, keys := range [][]*authtest.Key{{idp.Key, idp.Key}, {idp.Key, idp.Key}, {authtest.NewKey(t, "next", jose.ES256)}, {idp.Key}} {
		idp.Publish(keys...)
		v.Refresh()
	}
	_, err := v.Verify(t.Context(), idp.Token(nil))
	assert.NoError(t, err)
}

func TestKeysSurviveProviderOutage(t *testing.T) {
	idp := authtest.NewProvider(t)
	v, clock := newRemote(t, idp)
	token := idp.Token(map[string]any{"exp": time.Now().Add(1000 * time.Hour).Unix()})
	if warning, err := v.Health(); warning != "" || err != nil {
		t.Fatalf("%q, %v", warning, err)
	}
	idp.Down(true)
	v.Refresh()
	clock.move(23 * time.Hour)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	warning, err := v.Health()
	assert.Truef(t, err == nil && strings.Contains(warning, "could not be fetched since") && !strings.Contains(warning, idp.URL),
		"%q, %v", warning, err)
	clock.move(2 * time.Hour)
	_, err = v.Verify(t.Context(), token)
	assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "after a day: %v", err)
	_, err = v.Health()
	assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "after a day: %v", err)
	idp.Down(false)
	clock.move(time.Minute)
	_, err = v.Verify(t.Context(), token)
	assert.NoError(t, err, "it is back, and nobody has asked")
	if warning, err := v.Health(); warning != "" || err != nil {
		t.Errorf("it is back: %q, %v", warning, err)
	}
}

func TestProviderIsDownAtStart(t *testing.T) {
	idp := authtest.NewProvider(t)
	idp.Down(true)
	v, clock := newRemote(t, idp)
	_, err := v.Verify(t.Context(), idp.Token(nil))
	assert.Equal(t, workflow.Unavailable, workflow.CodeOf(err), err)
	idp.Down(false)
	clock.move(jwt.ForcedEvery)
	_, err = v.Verify(t.Context(), idp.Token(nil))
	assert.NoError(t, err)
}

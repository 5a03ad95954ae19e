package apikey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/workflow"
)

// start starts a node's verifier. The returned value is the offset of its clock.
func start(t *testing.T, db Database, c Config) (*Verifier, *atomic.Int64) {
	t.Helper()
	c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	v, ahead := NewVerifier(tableOf(db), c), &atomic.Int64{}
	v.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	v.Start()
	t.Cleanup(v.Stop)
	return v, ahead
}

func (v *Verifier) want(t *testing.T, text string) auth.Principal {
	t.Helper()
	p, err := v.Verify(t.Context(), text)
	require.NoError(t, err)
	return p
}

func (v *Verifier) wantRefused(t *testing.T, text string, reason auth.Reason) {
	t.Helper()
	if p, err := v.Verify(t.Context(), text); reasonOf(err) != reason || workflow.CodeOf(err) != workflow.Unauthorized || p.Actor != "" {
		t.Errorf("%+v, %v, not %s", p, err, reason)
	}
}

func isOpen(c <-chan struct{}) bool {
	select {
	case <-c:
		return false
	default:
		return true
	}
}

func TestVerifyReturnsPrincipal(t *testing.T) {
	t.Parallel()
	v, _ := start(t, pgtest.Pool(t), Config{})
	k, text := v.make(t, reader("k"))
	for range 100 {
		if p := v.want(t, text); p.Tenant != "acme" || p.Actor != "ann" || p.Proof.String() != "key "+k.ID || p.Grants.String() != "read" ||
			len(p.Roles) != 1 || !p.Until.IsZero() || !isOpen(p.Ended) {
			t.Fatalf("%+v", p)
		}
	}
	s := v.Stats()
	assert.Truef(t, s.Lookups == 1 && s.Known == 1 && s.Failures == 0, "%+v", s)
	stranger, _ := newText(k.ID)
	v.wantRefused(t, stranger, auth.UnknownKey)
	stranger, _ = newText(newID())
	v.wantRefused(t, stranger, auth.UnknownKey)
	v.wantRefused(t, text[:len(text)-1]+"!", auth.Malformed)
}

func TestRevocationReachesOtherNodes(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	here, _ := start(t, pool, Config{})
	there, _ := start(t, pool, Config{})
	k, text := here.make(t, reader("k"))
	_, other := here.make(t, reader("other"))
	on, off, stays := here.want(t, text), there.want(t, text), there.want(t, other)
	ended, err := there.Good(t.Context(), k.ID)
	require.True(t, err == nil && isOpen(ended), err)
	_, err = here.Revoke(t.Context(), "acme", k.ID, "ann")
	require.NoError(t, err)
	here.wantRefused(t, text, auth.Revoked) // at once
	assert.False(t, isOpen(on.Ended), "what is open here does not end")
	began := time.Now()
	await.Receive(t, "what is open there ends", off.Ended)
	t.Logf("after %s", time.Since(began))
	there.wantRefused(t, text, auth.Revoked)
	_, err = there.Good(t.Context(), k.ID)
	assert.Truef(t, reasonOf(err) == auth.Revoked && !isOpen(ended), "it is good: %v", err)
	assert.True(t, isOpen(stays.Ended), "another key has ended too")
	stranger, _ := newText(k.ID)
	there.wantRefused(t, stranger, auth.UnknownKey) // without the text the caller learns nothing
}

func TestRotationOverlap(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	here, _ := start(t, pool, Config{Every: time.Millisecond})
	there, ahead := start(t, pool, Config{Every: time.Millisecond})
	k, first := here.make(t, reader("k"))
	open := there.want(t, first)
	_, second, err := here.Rotate(t.Context(), "acme", k.ID, Rotation{Overlap: time.Hour, By: "boss"})
	require.NoError(t, err)
	here.want(t, second)
	await.Eventually(t, "the other node takes the new text", func() bool { _, err := there.Verify(t.Context(), second); return err == nil })
	p := there.want(t, first)
	assert.Truef(t, !p.Until.Before(time.Now().Add(59*time.Minute)) && isOpen(open.Ended), "%+v", p)
	ahead.Store(int64(2 * time.Hour))
	await.Eventually(t, "the former text ends", func() bool {
		_,
			err := there.Verify(t.Context(), first)
		return reasonOf(err) == auth.Expired
	})
	await.Receive(t, "what is open with it since before the rotation ends", open.Ended)
	there.wantRefused(t, first, auth.Expired)
	newest := there.want(t, second)
	assert.True(t, isOpen(newest.Ended), "what is open with the other text has ended too")
	_, third, err := here.Rotate(t.Context(), "acme", k.ID, Rotation{By: "boss"})
	require.NoError(t, err)
	await.Receive(t, "what is open with the second one ends", newest.Ended)
	here.wantRefused(t, second, auth.UnknownKey)
	there.want(t, third)
}

func TestKeyExpires(t *testing.T) {
	t.Parallel()
	v, ahead := start(t, pgtest.Pool(t), Config{Every: time.Millisecond})
	k := reader("k")
	k.ExpiresAt = time.Now().Add(time.Hour)
	made, text := v.make(t, k)
	p := v.want(t, text)
	assert.Equalf(t, k.ExpiresAt.Unix(), p.Until.Unix(), "%+v", p)
	ahead.Store(int64(time.Hour))
	await.Eventually(t, "it has ended", func() bool { _, err := v.Verify(t.Context(), text); return reasonOf(err) == auth.Expired })
	await.Eventually(t, "it is no longer good", func() bool { _, err := v.Good(t.Context(), made.ID); return reasonOf(err) == auth.Expired })
}

// Invented ids cost the database a bounded number of queries and do not delay valid callers.
func TestInventedKeysCostBoundedQueries(t *testing.T) {
	t.Parallel()
	v, _ := start(t, pgtest.Pool(t), Config{})
	_, good := v.make(t, reader("k"))
	v.want(t, good)
	before, began := v.Stats(), time.Now()
	var all sync.WaitGroup
	var unknown, refused atomic.Int64
	for range 16 {
		all.Go(func() {
			for range 50 {
				text, _ := newText(newID())
				_, err := v.Verify(t.Context(), text)
				switch {
				case reasonOf(err) == auth.UnknownKey:
					unknown.Add(1)
				case workflow.CodeOf(err) == workflow.Unavailable:
					refused.Add(1)
				default:
					t.Errorf("%v", err)
				}
				_, err = v.Verify(t.Context(), good)
				assert.NoError(t, err, "a good caller is refused meanwhile")
			}
		})
	}
	all.Wait()
	looks, most := v.Stats().Looks-before.Looks, int64(time.Since(began)/apart)+2
	if looks > most || unknown.Load() == 0 || v.Stats().Known != 1 {
		t.Errorf("%d looks, where there is time for %d; %d unknown, %d refused, %d known", looks, most, unknown.Load(), refused.Load(),
			v.Stats().Known)
	}
}

// The number of waiting lookups is bounded.
func TestWaitingLookupsAreBounded(t *testing.T) {
	v := NewVerifier(nil, Config{}) // without polling
	for range maxWaiting {
		if _, err := v.request(newID()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := v.request(newID())
	wantCode(t, "one more", err, workflow.Unavailable)
	ids, looks := v.takeRequests()
	assert.Truef(t, len(ids) == maxLookups && len(looks) == maxLookups && len(v.waiting) == maxWaiting-maxLookups && len(v.asked) == 1,
		"%d are taken, %d left", len(ids), len(v.waiting))
}

// flaky is a database that can fail.
type flaky struct {
	Database
	down atomic.Bool
}

func (f *flaky) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if f.down.Load() {
		return nil, errors.New("down")
	}
	return f.Database.Query(ctx, sql, args...)
}

func TestCachedKeysSurviveOutage(t *testing.T) {
	t.Parallel()
	db := &flaky{Database: pgtest.Pool(t)}
	v, ahead := start(t, db, Config{Every: time.Millisecond})
	_, known := v.make(t, reader("known"))
	_, other := v.make(t, reader("other"))
	v.want(t, known)
	if warning, err := v.Health(); warning != "" || err != nil {
		t.Errorf("%q, %v", warning, err)
	}
	db.down.Store(true)
	await.Eventually(t, "it warns", func() bool { warning, err := v.Health(); return warning != "" && err == nil })
	ahead.Store(int64(30 * time.Second))
	v.want(t, known)
	_, err := v.Verify(t.Context(), other)
	wantCode(t, "one that is not known", err, workflow.Unavailable)
	ahead.Store(int64(2 * time.Minute))
	_, err = v.Verify(t.Context(), known)
	wantCode(t, "one that is known", err, workflow.Unavailable)
	_, err = v.Health()
	wantCode(t, "its health", err, workflow.Unavailable)
	db.down.Store(false)
	await.Eventually(t, "it is back", func() bool { _, err := v.Verify(t.Context(), known); return err == nil })
	v.want(t, other)
	warning, err := v.Health()
	assert.Truef(t, warning == "" && err == nil, "%q, %v", warning, err)
}

func TestLastUseIsStoredOncePerMinute(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	v, ahead := start(t, pool, Config{Every: time.Millisecond})
	k, text := v.make(t, reader("k"))
	v.make(t, reader("never"))
	for v.now().Second() > 50 { // so that the minute does not end
		ahead.Add(int64(10 * time.Second))
	}
	last := func() time.Time {
		v.writeUsed()
		k, err := v.Get(t.Context(), "", k.ID)
		require.NoError(t, err)
		return k.LastUsedAt
	}
	at := last()
	assert.Truef(t, at.IsZero(), "it was used at %s", at)
	for range 10 {
		await.Eventually(t, "it is taken", func() bool { _, err := v.Verify(t.Context(), text); return err == nil })
	}
	first := last()
	assert.Truef(t, !first.IsZero() && first.Second() == 0 && len(v.cache.unsaved()) == 0, "it was used at %s", first)
	ahead.Add(int64(time.Minute))
	await.Eventually(t, "it is taken", func() bool { _, err := v.Verify(t.Context(), text); return err == nil })
	second := last()
	assert.Truef(t, second.After(first), "it was used at %s and then at %s", first, second)
}

// Evicted keys end their streams and are looked up again when used.
func TestKeyCacheIsBounded(t *testing.T) {
	t.Parallel()
	v, _ := start(t, pgtest.Pool(t), Config{Cache: 2})
	texts, open := make([]string, 3), make([]auth.Principal, 3)
	for i := range texts {
		_, texts[i] = v.make(t, reader(fmt.Sprint(i)))
		open[i] = v.want(t, texts[i])
	}
	assert.Equal(t, 2, v.Stats().Known, "remembered")
	assert.True(t, isOpen(open[0].Ended) != isOpen(open[1].Ended) && isOpen(open[2].Ended),
		"it is not the one that is forgotten that ends")
	for _, text := range texts {
		p := v.want(t, text)
		assert.True(t, isOpen(p.Ended), "one that is known again has ended")
	}
}

func BenchmarkVerify(b *testing.B) {
	k := Key{ID: newID(), Tenant: "acme", Actor: "ann"}
	text, hash := newText(k.ID)
	k.hash = hash
	v := NewVerifier(nil, Config{})
	v.looked.Store(time.Now().Add(time.Hour).UnixNano())
	v.cache.put(k)
	for b.Loop() {
		_, err := v.Verify(b.Context(), text)
		require.NoError(b, err)
	}
}

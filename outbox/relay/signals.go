package relay

import (
	"sync"
	"time"
)

// signals are what other goroutines tell a holder.
type signals struct {
	lagging   []tenantLag      // logs that go on after the cursor, as the database says
	confirmed map[string]int64 // heads of logs that have grown, as the database says
	heads     map[string]int64 // likewise, as a commit or a hint says
	revision  int64            // of the sink
	until     time.Time        // the lease lasts at least so long
	due       []*tenantLog     // that were unloaded, and whose next attempt is due
	late      []*call          // whose timeout and grace are over
	lost      bool             // the lease is another node's
	drain     bool             // the lease is to be given back
	stop      bool             // calls are to be broken off
}

// tenantLag is a tenant whose log goes on after the cursor, as of a revision of the
// sink.
type tenantLag struct {
	tenant                 string
	cursor, head, revision int64
}

func noSignals() signals { return signals{confirmed: map[string]int64{}, heads: map[string]int64{}} }

// signalBox keeps signals until their holder takes them. Sending never blocks.
type signalBox struct {
	poked chan struct{} // one token: there are some

	mu      sync.Mutex
	waiting signals
	reading map[string]bool // tenants that have a reader, which learns of the log's growth by itself
}

func newSignalBox() *signalBox {
	return &signalBox{poked: make(chan struct{}, 1), waiting: noSignals(), reading: map[string]bool{}}
}

// send adds to what is told.
func (b *signalBox) send(tell func(*signals)) {
	b.mu.Lock()
	tell(&b.waiting)
	b.mu.Unlock()
	poke(b.poked)
}

// noteHead tells that a log has grown, as somebody says. It does little for a tenant
// that has a reader.
func (b *signalBox) noteHead(tenant string, head int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading[tenant] {
		return
	}
	b.waiting.heads[tenant] = max(b.waiting.heads[tenant], head)
	poke(b.poked)
}

// setReading notes whether a tenant has a reader.
func (b *signalBox) setReading(tenant string, reads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reads {
		b.reading[tenant] = true
	} else {
		delete(b.reading, tenant)
	}
}

// take takes everything that was told.
func (b *signalBox) take() signals {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.waiting
	b.waiting = noSignals()
	return s
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

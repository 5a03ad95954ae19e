package relay

import (
	"sync"
	"time"
)

// signals are messages of other goroutines to a holder.
type signals struct {
	lagging   []tenantLag      // logs with events after the cursor
	confirmed map[string]int64 // last positions of logs that have grown, from the database
	heads     map[string]int64 // last positions from commits and notifications
	revision  int64            // of the sink
	until     time.Time        // the lease is valid at least until then
	due       []*tenantLog     // unloaded logs whose next attempt is due
	late      []*call          // calls past their timeout and grace period
	lost      bool             // another node has the lease
	drain     bool             // release the lease
	stop      bool             // cancel the calls
}

// tenantLag is a tenant with events after its cursor, as of a revision of the sink.
type tenantLag struct {
	tenant                 string
	cursor, head, revision int64
}

// signalBox collects signals until the holder takes them. Sending never blocks.
type signalBox struct {
	poked chan struct{} // one token: there are signals

	mu      sync.Mutex
	waiting signals
	reading map[string]bool // tenants with a reader, which follows the log by itself
}

func newSignalBox() *signalBox {
	b := &signalBox{poked: make(chan struct{}, 1), reading: map[string]bool{}}
	b.takeAll()
	return b
}

func (b *signalBox) send(tell func(*signals)) {
	b.mu.Lock()
	tell(&b.waiting)
	b.mu.Unlock()
	b.poke()
}

func (b *signalBox) poke() {
	select {
	case b.poked <- struct{}{}:
	default:
	}
}

func (b *signalBox) noteHead(tenant string, head int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading[tenant] {
		return
	}
	b.waiting.heads[tenant] = max(b.waiting.heads[tenant], head)
	b.poke()
}

func (b *signalBox) setReading(tenant string, reads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reads {
		b.reading[tenant] = true
	} else {
		delete(b.reading, tenant)
	}
}

func (b *signalBox) takeAll() signals {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.waiting
	b.waiting = signals{confirmed: map[string]int64{}, heads: map[string]int64{}}
	return s
}

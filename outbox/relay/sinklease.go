package relay

import (
	"sync/atomic"
	"time"
)

// sinkLease is a node's lease of a sink.
type sinkLease struct {
	token    int64       // the fencing token: whoever has the newest holds the lease
	until    time.Time   // it lasts at least so long
	lost     atomic.Bool // another node may have it
	released bool        // it was given back
}

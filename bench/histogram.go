package bench

import (
	"math/bits"
	"time"
)

// A histogram counts durations in buckets whose width grows with the duration,
// so that a quantile is off by less than one percent. It is for one goroutine.
type histogram struct {
	buckets []uint32
	n       int64
}

// Below 128 ns a bucket is one nanosecond wide; from there on 128 buckets share
// each doubling. The last bucket takes everything from 18 minutes on.
const (
	bucketBits  = 7
	bucketCount = (40 - bucketBits + 1) << bucketBits
)

func newHistogram() *histogram { return &histogram{buckets: make([]uint32, bucketCount)} }

func (h *histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.n++
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.n += o.n
}

// quantile returns the duration that a share q of all durations does not
// exceed, 0 for an empty histogram.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := int64(q * float64(h.n-1))
	for i, n := range h.buckets {
		if rank -= int64(n); rank < 0 {
			return middleOf(i)
		}
	}
	return middleOf(bucketCount - 1)
}

func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	shift := max(bits.Len64(ns)-bucketBits-1, 0)
	return min(shift<<bucketBits+int(ns>>shift), bucketCount-1)
}

// middleOf inverts bucketOf.
func middleOf(i int) time.Duration {
	shift := max(i>>bucketBits-1, 0)
	low := uint64(i-shift<<bucketBits) << shift
	return time.Duration(low + (uint64(1)<<shift)/2)
}

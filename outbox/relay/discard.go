package relay

import "time"

// discard drops what is in memory of a log whose cursor an operator has moved: nothing
// of it is delivered from here or stored. What is in a call comes to its end; until
// then nothing else of its instances is delivered, so that the order holds. No batch is
// under way.
func (f *flow) discard(w *logWindow, now time.Time) {
	w.discarded = true
	f.memory.events -= w.events
	for _, p := range w.positions {
		f.memory.bytes -= p.bytes
	}
	for _, c := range w.newRows {
		c.item.queue.unstored--
	}
	w.positions, w.newRows, w.events, w.complete = nil, nil, 0, 0
	for _, q := range f.queues {
		if q.tenant != w.tenant {
			continue
		}
		if q.state == inCall {
			q.stale = true
			if !q.logInCall {
				f.drop(&q.fromLog, 0)
			}
			continue
		}
		f.drop(&q.fromLog, 0)
		f.drop(&q.fromDead, 0)
		if !q.aside && !q.hangs(now) {
			q.notBefore = time.Time{}
		}
		if q.state != reading && q.state != onHold {
			q.state = idle
			f.reschedule(q, now)
		}
	}
}

// dropDiscarded drops the events of a discarded window from a queue that is in no call
// any more.
func (f *flow) dropDiscarded(q *instanceQueue) {
	n := 0
	for n < len(q.fromLog) && q.fromLog[n].pending.window.discarded {
		n++
	}
	f.items -= n
	clear(q.fromLog[:n])
	q.fromLog = q.fromLog[n:]
}

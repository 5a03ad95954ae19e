package relay

import "time"

// discard gives up what is in memory of a tenant's log whose cursor a person has
// moved: none of it is delivered from here or stored. What is in a call comes to
// its end; until then nothing else of its instances is delivered, so that the
// order holds. No letter is under way.
func (f *flow) discard(s *stretch, now time.Time) {
	s.void = true
	f.events -= s.events
	for _, m := range s.marks {
		f.bytes -= m.bytes
	}
	for _, p := range s.parks {
		p.item.lane.unwritten--
	}
	s.marks, s.parks, s.events, s.done = nil, nil, 0, 0
	for _, l := range f.lanes {
		if l.tenant != s.tenant {
			continue
		}
		if l.at == busy {
			l.stale = true
			if !l.out {
				f.drop(&l.live, 0)
			}
			continue
		}
		f.drop(&l.live, 0)
		f.drop(&l.rows, 0)
		if !l.aside && !l.hangs(now) {
			l.until = time.Time{}
		}
		if l.at != reading && l.at != blocked {
			l.at = nowhere
			f.put(l, now)
		}
	}
}

// dropVoid drops what came of a log that is read anew from a lane that is in no
// call any more.
func (f *flow) dropVoid(l *lane) {
	n := 0
	for n < len(l.live) && l.live[n].mark.of.void {
		n++
	}
	f.items -= n
	clear(l.live[:n])
	l.live = l.live[n:]
}

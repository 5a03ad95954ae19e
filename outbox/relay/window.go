package relay

import "github.com/pawlhq/pawl/transitions"

// mark is a transition on its way: how many of its events are still to be
// delivered or put aside. The cursor stops before the first one that has any.
type mark struct {
	of       *stretch
	position int64
	open     int
	events   int // what it takes up of the window
	bytes    int
}

// stretch is the piece of a tenant's log between the cursor as it is stored and
// what was read last.
type stretch struct {
	tenant string
	since  int64   // the revision of the sink as of which the cursor was read
	void   bool    // a person has moved the cursor since; nothing of it is stored
	stored int64   // the cursor
	read   int64   // the last position that was taken in
	events int     // that are in it
	marks  []*mark // of the positions in between, in order
	done   int     // how many of them, from the first, are complete

	parks []note // events that the cursor may pass if they become rows

	alone bool  // nothing is taken in behind the first event until that is delivered
	tried tried // what is known of that, where it was let go

	failure string // why the cursor does not go on
	said    string // what is stored of that
	blocker *item  // the exhausted event that it is about; nil: it is about reading
	listed  bool   // it is among the flow's changed stretches
}

// cursor is the position up to which everything is complete.
func (s *stretch) cursor() int64 {
	if s.done == 0 {
		return s.stored
	}
	return s.marks[s.done-1].position
}

// dirty reports whether there is something to store.
func (s *stretch) dirty() bool { return !s.void && (s.cursor() > s.stored || s.failure != s.said) }

// advance counts the marks that are complete.
func (s *stretch) advance() {
	for s.done < len(s.marks) && s.marks[s.done].open == 0 {
		s.done++
		s.alone = false
	}
}

// passed takes the parks that the cursor passes.
func (s *stretch) passed(parks []note) []note {
	cursor, kept := s.cursor(), s.parks[:0]
	for _, p := range s.parks {
		if p.item.mark.position <= cursor {
			parks = append(parks, p)
		} else {
			kept = append(kept, p)
		}
	}
	clear(s.parks[len(kept):])
	s.parks = kept
	return parks
}

// store notes that the cursor is stored, and drops what lies before it. It
// returns what that took up.
func (s *stretch) store(position int64, failure string) (events, bytes int) {
	n := 0
	for n < s.done && s.marks[n].position <= position {
		events += s.marks[n].events
		bytes += s.marks[n].bytes
		n++
	}
	clear(s.marks[:n])
	s.events -= events
	s.marks, s.done = s.marks[n:], s.done-n
	s.stored, s.said = position, failure
	return events, bytes
}

// passOver notes that an event was read that is not wanted.
func (s *stretch) passOver(position int64) {
	s.read = position
	if n := len(s.marks); n == 0 || s.marks[n-1].position != position && s.marks[n-1].events > 0 {
		s.marks = append(s.marks, &mark{of: s, position: position})
	} else if s.marks[n-1].events == 0 { // what is passed over shares a mark
		s.marks[n-1].position = position
	}
}

// markOf finds or makes the mark of an event that was read and is wanted.
func (s *stretch) markOf(position int64) *mark {
	s.read = position
	if n := len(s.marks); n > 0 && s.marks[n-1].position == position {
		if s.marks[n-1].events > 0 {
			return s.marks[n-1]
		}
		s.marks[n-1].position = position - 1 // another event of the position was passed over
	}
	m := &mark{of: s, position: position}
	s.marks = append(s.marks, m)
	return m
}

// add adds an event to a mark. It returns what it takes up.
func (s *stretch) add(m *mark, e *transitions.Logged) (bytes int) {
	bytes = len(e.CloudEvent) + len(e.Payload)
	m.open++
	m.events++
	m.bytes += bytes
	s.events++
	return bytes
}

package eventlog

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlhq/pawl/examples/fines"
)

// Generate makes up a log of so many cases. It looks like the log that the
// model was made on: the same activities in the same frequent orders, the usual
// sums and terms, and the same kinds of entries that have to be refused, though
// those more often, so that a small log has some. One seed makes one log, for
// ever, and a shorter log is the beginning of a longer one. It never yields an
// error.
func Generate(seed uint64, cases int) Cases {
	return func(yield func(Case, error) bool) {
		for i := range cases {
			m := maker{rand: rand.New(rand.NewPCG(seed, uint64(i)))}
			if !yield(m.invent(fmt.Sprintf("G%06d", i+1)), nil) {
				return
			}
		}
	}
}

// paths are the orders in which a case's activities come, one letter each (see
// letters), and how many of 10,000 cases take them. The last six are rare in
// the log and are here for the sake of what is refused.
var paths = []struct {
	weight int
	path   string
}{
	{3756, "CSNAX"}, {3083, "CP"}, {1354, "CS"}, {633, "CSNAP"}, {248, "CSNAPP"}, {219, "CSNPAP"}, {208, "CSP"},
	{166, "CSNIAF"}, {101, "CSNAPX"}, {35, "CSNPAX"}, {29, "CSNAIF"}, {24, "CPS"}, {12, "CSNIAFROP"}, {12, "CSNJAP"},
	{11, "CSIF"}, {10, "CSNIFAROP"}, {9, "CSNJAX"}, {7, "CPSNAP"}, {7, "CSNIAFROX"}, {6, "CSNIFAROX"}, {5, "CSNAPPP"},
	{4, "CSNAIFROP"}, {4, "CPSP"}, {4, "CSNAIFROX"}, {3, "CSNIAFROJ"}, {3, "CSNAJ"}, {2, "CSNIAFRO"}, {2, "CSNIFARP"},
	{10, "CISNAF"}, {5, "CSNIAROXF"}, {5, "CSNJIFAP"}, {5, "CSNAROP"}, {5, "CSNIFAJP"}, {5, "CPSNPAP"},
}

var letters = map[rune]string{
	'C': createFine, 'S': sendFine, 'N': insertNotification, 'A': addPenalty, 'P': payment, 'I': insertAppeal,
	'F': sendAppeal, 'R': receiveResult, 'O': notifyResult, 'J': appealToJudge, 'X': sendForCollection,
}

var (
	firstDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

	sums     = []int64{3500, 3600, 3360, 3800, 3130, 3280, 3200, 3900, 2200, 7100, 14300}
	expenses = []int64{1350, 1100, 1000, 1300, 671, 1500, 646, 1425, 0}
	articles = []int{157, 157, 157, 7, 7, 158, 142, 181, 180, 171, 80}
	vehicles = []string{"A", "A", "A", "A", "A", "A", "C", "M"}
)

// maker makes up one case.
type maker struct {
	rand     *rand.Rand
	c        Case
	day      time.Time
	termEnds time.Time // 60 days after the notification; zero before it
	raiseDue bool      // the path has a penalty still to come

	amount, expense, raised, paid int64
}

func (m *maker) invent(id string) Case {
	m.c = Case{ID: id}
	m.day = firstDay.AddDate(0, 0, m.rand.IntN(13*365))
	path := m.path()
	for i, letter := range path {
		e := Event{Case: id, Number: i + 1, Transition: letters[letter]}
		m.raiseDue = contains(path[i:], 'A')
		m.pass(e.Transition)
		e.On = fines.DateOf(m.day)
		m.fill(&e, path[i+1:])
		m.c.Events = append(m.c.Events, e)
	}
	return m.c
}

func (m *maker) path() string {
	total := 0
	for _, p := range paths {
		total += p.weight
	}
	n := m.rand.IntN(total)
	for _, p := range paths {
		if n -= p.weight; n < 0 {
			return p.path
		}
	}
	return paths[0].path
}

// pass lets the time go by until the next event.
func (m *maker) pass(transition string) {
	days := 1
	switch transition {
	case createFine:
		return
	case addPenalty: // on the very day when the term ends
		m.day = later(m.day, m.termEnds)
		return
	case sendForCollection: // once a year, in spring
		m.day = time.Date(m.day.Year()+2, 3, 30, 0, 0, 0, 0, time.UTC)
		return
	case sendFine:
		days = 40 + m.rand.IntN(80)
	case insertNotification:
		days = 7 + m.rand.IntN(35)
	case payment, insertAppeal:
		days = m.rand.IntN(30)
	default:
		days = 5 + m.rand.IntN(90)
	}
	m.day = m.day.AddDate(0, 0, days)
	switch {
	case transition == insertNotification:
		m.termEnds = m.day.AddDate(0, 0, fines.PayTerm)
	case m.raiseDue && !m.termEnds.IsZero() && m.day.After(m.termEnds):
		m.day = m.termEnds
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

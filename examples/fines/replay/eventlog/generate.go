package eventlog

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Generate makes up a log of so many cases. It looks like the log that the
// model was made on: the same activities in the same frequent orders, the usual
// sums and terms, and the same kinds of entries that have to be refused, though
// those more often, so that a small log has some. One seed makes one log, and a
// shorter log is the beginning of a longer one.
func Generate(seed uint64, cases int) io.Reader {
	g := &generator{seed: seed, cases: cases}
	g.text.WriteString(header)
	return g
}

// generator makes up a case when the one before has been read.
type generator struct {
	seed         uint64
	cases, begun int
	text         bytes.Buffer
}

// Read implements io.Reader.
func (g *generator) Read(b []byte) (int, error) {
	if g.text.Len() == 0 && g.begun < g.cases {
		m := maker{rand: rand.New(rand.NewPCG(g.seed, uint64(g.begun)))}
		g.begun++
		m.invent(&g.text, fmt.Sprintf("G%06d", g.begun))
	}
	return g.text.Read(b)
}

// activities are named by a letter each. One happens so many days after the one
// before, and up to some more.
var activities = map[rune]struct {
	name       string
	days, more int
}{
	'C': {"Create Fine", 0, 13 * 365}, 'S': {"Send Fine", 40, 80}, 'N': {"Insert Fine Notification", 7, 35},
	'A': {"Add penalty", 0, 1}, 'P': {"Payment", 0, 30}, 'X': {"Send for Credit Collection", 400, 300},
	'I': {"Insert Date Appeal to Prefecture", 0, 30}, 'F': {"Send Appeal to Prefecture", 5, 90},
	'R': {"Receive Result Appeal from Prefecture", 5, 90}, 'O': {"Notify Result Appeal to Offender", 5, 90},
	'J': {"Appeal to Judge", 5, 90},
}

// paths are the orders in which a case's activities come, and how many of 10,000
// cases take them. The last six are rare in the log and are here for the sake of
// what is refused.
var paths = []struct {
	weight int
	path   string
}{
	{3756, "CSNAX"}, {3083, "CP"}, {1354, "CS"}, {633, "CSNAP"}, {248, "CSNAPP"}, {219, "CSNPAP"}, {208, "CSP"},
	{166, "CSNIAF"}, {101, "CSNAPX"}, {35, "CSNPAX"}, {29, "CSNAIF"}, {24, "CPS"}, {12, "CSNIAFROP"}, {12, "CSNJAP"},
	{11, "CSIF"}, {10, "CSNIFAROP"}, {9, "CSNJAX"}, {7, "CPSNAP"}, {7, "CSNIAFROX"}, {6, "CSNIFAROX"}, {5, "CSNAPPP"},
	{4, "CSNAIFROP"}, {4, "CPSP"}, {4, "CSNAIFROX"}, {3, "CSNIAFROJ"}, {30, "CSNAJ"}, {2, "CSNIAFRO"}, {2, "CSNIFARP"},
	{10, "CISNAF"}, {5, "CSNIAROXF"}, {5, "CSNJIFAP"}, {5, "CSNAROP"}, {5, "CSNIFAJP"}, {5, "CPSNPAP"},
}

// maker makes up one case. Sums are in cents.
type maker struct {
	rand     *rand.Rand
	termEnds time.Time // 60 days after the notification

	amount, expense, raised, paid int64
}

func (m *maker) invent(out *bytes.Buffer, id string) {
	day, path := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), m.path()
	for i, letter := range path {
		a := activities[letter]
		day = day.AddDate(0, 0, a.days+m.rand.IntN(a.more))
		switch {
		case letter == 'N':
			m.termEnds = day.AddDate(0, 0, 60)
		case letter == 'A' && day.Before(m.termEnds): // on the very day when the term ends
			day = m.termEnds
		}
		row := [columns]string{colCase: id, colActivity: a.name, colTime: day.Format(time.RFC3339)}
		m.fill(&row, letter, path[i+1:])
		out.WriteString(strings.Join(row[:], ",") + "\n")
	}
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

// fill makes up what the row says besides its day; rest is the path after it.
func (m *maker) fill(row *[columns]string, letter rune, rest string) {
	switch letter {
	case 'C':
		m.amount = pick(m, int64(3500), 3600, 3360, 3800, 3130, 3280, 3200, 3900, 2200, 7100, 14300)
		if m.one(500) { // the prefect sets the sum of some violations
			m.amount = 0
		}
		row[colAmount], row[colTotal], row[colDismissal] = euros(m.amount), "0.0", "NIL"
		row[colArticle], row[colVehicleClass] = pick(m, "157", "7", "158", "142", "181"), pick(m, "A", "A", "A", "C", "M")
		row[colResource], row[colPoints] = strconv.Itoa(530+m.rand.IntN(40)), pick(m, "0", "0", "0", "2")
		if rest == "S" && m.one(40) { // annulled at once, and sent all the same
			row[colDismissal] = "A"
		}
	case 'S':
		m.expense = pick(m, int64(1350), 1100, 1000, 1300, 671, 1500, 646, 1425, 0)
		row[colExpense] = euros(m.expense)
	case 'N':
		row[colNotificationType], row[colLastSent] = "P", pick(m, "P", "N", "")
	case 'A':
		m.raised = 2*m.amount + pick(m, int64(0), 150, 200)*min(m.amount, 1)
		row[colAmount] = euros(m.raised)
	case 'P':
		m.pay(row, rest)
	case 'F', 'J': // annulled if the path goes no further, mostly
		row[colDismissal] = "NIL"
		if rest == "" && !m.one(10) {
			row[colDismissal] = "#"
		}
	}
}

// pay pays all that is owed with the path's last payment and, with an earlier
// one, the reduced sum without the expenses.
func (m *maker) pay(row *[columns]string, rest string) {
	due := max(m.amount, m.raised) + m.expense - m.paid
	switch {
	case m.one(1000):
		due = 0 // an entry that was never completed
	case due <= 0 || strings.ContainsAny(rest, "PX"):
		due = max(m.amount, 1)
	case m.raised > 0 && m.one(5):
		due = m.amount + m.expense // the reduced sum, too late
	}
	m.paid += due
	row[colPayment], row[colTotal] = euros(due), euros(m.paid)
}

// one is true once in n times.
func (m *maker) one(n int) bool { return m.rand.IntN(n) == 0 }

func pick[T any](m *maker, from ...T) T { return from[m.rand.IntN(len(from))] }

// euros writes cents as the log does.
func euros(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

package eventlog

import "strings"

// fill makes up what the event says besides its day; rest is the path after it.
func (m *maker) fill(e *Event, rest string) {
	switch e.Transition {
	case createFine:
		m.create(e, rest)
	case sendFine:
		m.expense = pick(m, expenses)
		e.ExpenseCents = m.expense
	case insertNotification:
		e.NotificationType, e.LastSent = "P", pick(m, []string{"P", "N", ""})
	case addPenalty:
		m.raised = 2*m.amount + pick(m, []int64{0, 150, 200})*min(m.amount, 1)
		e.AmountCents = m.raised
	case payment:
		m.pay(e, rest)
	case sendAppeal, appealToJudge:
		m.rule(e, rest)
	}
}

func (m *maker) create(e *Event, rest string) {
	m.amount = pick(m, sums)
	if m.one(500) { // the prefect sets the sum of some violations
		m.amount = 0
	}
	e.AmountCents, e.Article, e.VehicleClass = m.amount, pick(m, articles), pick(m, vehicles)
	e.Officer = 530 + m.rand.IntN(40)
	if m.one(40) {
		e.Points = 2
	}
	if rest == "S" && m.one(40) { // annulled at once, and sent all the same
		e.Dismissal = "A"
	}
}

// pay pays all that is owed with the path's last payment and, with an earlier
// one, the reduced sum without the expenses.
func (m *maker) pay(e *Event, rest string) {
	due := max(m.amount, m.raised) + m.expense - m.paid
	switch {
	case m.one(1000):
		due = 0 // an entry that was never completed
	case due <= 0 || contains(rest, 'P') || contains(rest, 'X'):
		due = max(m.amount, 1)
	case m.raised > 0 && m.one(5):
		due = m.amount + m.expense // the reduced sum, too late
	}
	m.paid += due
	e.PaymentCents, e.TotalPaymentsCents = due, m.paid
}

// rule annuls the fine if the path goes no further, mostly.
func (m *maker) rule(e *Event, rest string) {
	if rest != "" || m.one(10) {
		return
	}
	e.Dismissal = "#"
	if e.Transition == appealToJudge {
		e.Dismissal = "G"
	}
}

// one is true once in n times.
func (m *maker) one(n int) bool { return m.rand.IntN(n) == 0 }

func pick[T any](m *maker, from []T) T { return from[m.rand.IntN(len(from))] }

func contains(path string, letter rune) bool { return strings.ContainsRune(path, letter) }

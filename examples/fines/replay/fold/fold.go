package fold

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
)

// Outcome is what became of one event of a case.
type Outcome struct {
	Case       string
	Number     int // counts the case's events from 1
	Transition string
	From, To   State
	Reason     string // why it was refused; "" if it was accepted
}

// AppendLine appends the outcome's line of the trace: the fields in their
// order, separated by tabs, and a newline.
func (o Outcome) AppendLine(b []byte) []byte {
	b = append(b, o.Case...)
	b = append(b, '\t')
	b = strconv.AppendInt(b, int64(o.Number), 10)
	for _, s := range []string{o.Transition, string(o.From), string(o.To), o.Reason} {
		b = append(b, '\t')
		b = append(b, s...)
	}
	return append(b, '\n')
}

// Case is a case after its last event. All sums are in cents.
type Case struct {
	ID       string
	State    State
	Version  int64      // how many of its events were accepted
	Outcomes []Outcome  // one per event
	Rows     [][]string // of the log, one per event

	Amount, Raised, Expenses, Paid int64
}

// LogDigest is what Run returns for the whole road-traffic-fines log that the model
// was made on; see package fines.
const LogDigest = "3992aea1cf3898f964412b554f4a338fc18a3cbfd5177734c3deb7ec8993bb12"

// Run plays a log, which is CSV with the events of a case together, the creation
// first and once. It calls each with every case when its last event was played;
// an error of each ends the run. The digest is the hex SHA-256 of the trace: every
// outcome's line, in the log's order.
func Run(r io.Reader, each func(Case) error) (digest string, err error) {
	rows := csv.NewReader(r)
	head, err := rows.Read()
	if err != nil {
		return "", fmt.Errorf("the log has no header: %w", err)
	}
	if !slices.Equal(head, columns) {
		return "", fmt.Errorf("the log has the columns %q, want %q", head, columns)
	}
	p := player{each: each, trace: sha256.New()}
	err = p.play(rows)
	return hex.EncodeToString(p.trace.Sum(nil)), err
}

type player struct {
	each  func(Case) error
	trace hash.Hash
	line  []byte
	c     Case
	now   fine
}

func (p *player) play(rows *csv.Reader) error {
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return p.finish()
		}
		if err != nil {
			return err
		}
		if row[0] != p.c.ID {
			if err := p.finish(); err != nil {
				return err
			}
			p.c, p.now = Case{ID: row[0]}, fine{}
		}
		e, err := parse(row)
		if err != nil {
			return fmt.Errorf("case %s, event %d: %w", p.c.ID, len(p.c.Outcomes)+1, err)
		}
		p.c.Rows = append(p.c.Rows, row)
		p.event(e)
	}
}

func (p *player) event(e *event) {
	next, reason := step(p.now, e)
	o := Outcome{p.c.ID, len(p.c.Outcomes) + 1, e.transition, p.now.state, next.state, reason}
	if reason == "" {
		p.c.Version++
	}
	p.c.Outcomes, p.now = append(p.c.Outcomes, o), next
	p.line = o.AppendLine(p.line[:0])
	p.trace.Write(p.line) // a hash never fails
}

// finish hands the case over, if there was one.
func (p *player) finish() error {
	if len(p.c.Outcomes) == 0 {
		return nil
	}
	c := p.c
	c.State, c.Amount, c.Raised, c.Expenses, c.Paid = p.now.state, p.now.amount, p.now.raised, p.now.expenses, p.now.paid
	return p.each(c)
}

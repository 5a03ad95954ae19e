package fold

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
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
	Version  int64     // how many of its events were accepted
	Outcomes []Outcome // one per event

	Amount, Raised, Expenses, Paid int64
}

// Refused counts the case's refused events by reason.
func (c Case) Refused() map[string]int {
	counts := map[string]int{}
	for _, o := range c.Outcomes {
		if o.Reason != "" {
			counts[o.Reason]++
		}
	}
	return counts
}

// Totals sums up a log.
type Totals struct {
	Cases, Events, Accepted int
	Refused                 map[string]int // events by reason
	Ends                    map[State]int  // cases by their last state
	Digest                  string         // hex SHA-256 of the trace: every outcome's line, in the log's order
}

// LogDigest is the Digest of the whole road-traffic-fines log that the model
// was made on; see package fines.
const LogDigest = "3992aea1cf3898f964412b554f4a338fc18a3cbfd5177734c3deb7ec8993bb12"

// File is Run over a file, which may be gzip'd.
func File(path string, each func(Case) error) (Totals, error) {
	f, err := os.Open(path)
	if err != nil {
		return Totals{}, err
	}
	totals, err := fromFile(f, each)
	return totals, errors.Join(err, f.Close())
}

func fromFile(f *os.File, each func(Case) error) (Totals, error) {
	r := bufio.NewReader(f)
	if magic, err := r.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return Run(r, each)
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return Totals{}, err
	}
	return Run(z, each)
}

// Run plays a log, which is CSV with the events of a case together, the creation
// first and once. It calls each, unless that is nil, with every case when its
// last event was played. An error of each ends the run; the totals are those of
// the cases until then.
func Run(r io.Reader, each func(Case) error) (Totals, error) {
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return Totals{}, fmt.Errorf("the log has no header: %w", err)
	}
	if !slices.Equal(head, columns) {
		return Totals{}, fmt.Errorf("the log has the columns %q, want %q", head, columns)
	}
	p := player{each: each, trace: sha256.New(), totals: Totals{Refused: map[string]int{}, Ends: map[State]int{}}}
	err = p.play(rows)
	p.totals.Digest = hex.EncodeToString(p.trace.Sum(nil))
	return p.totals, err
}

type player struct {
	each   func(Case) error
	trace  hash.Hash
	line   []byte
	totals Totals
	id     string
	now    fine
	done   []Outcome
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
		if row[0] != p.id {
			if err := p.finish(); err != nil {
				return err
			}
			p.id, p.now, p.done = row[0], fine{}, nil
		}
		e, err := parse(row)
		if err != nil {
			return fmt.Errorf("case %s, event %d: %w", p.id, len(p.done)+1, err)
		}
		p.event(e)
	}
}

func (p *player) event(e *event) {
	next, reason := step(p.now, e)
	p.done = append(p.done, Outcome{p.id, len(p.done) + 1, e.transition, p.now.state, next.state, reason})
	p.now = next
}

// finish hands the case over, if there was one.
func (p *player) finish() error {
	if len(p.done) == 0 {
		return nil
	}
	c := Case{ID: p.id, State: p.now.state, Outcomes: p.done,
		Amount: p.now.amount, Raised: p.now.raised, Expenses: p.now.expenses, Paid: p.now.paid}
	for _, o := range p.done {
		p.line = o.AppendLine(p.line[:0])
		p.trace.Write(p.line) // a hash never fails
		if o.Reason == "" {
			c.Version++
		} else {
			p.totals.Refused[o.Reason]++
		}
	}
	p.totals.Cases++
	p.totals.Events += len(p.done)
	p.totals.Accepted += int(c.Version)
	p.totals.Ends[c.State]++
	if p.each == nil {
		return nil
	}
	return p.each(c)
}

package provider

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Op is one of the operations on a charge.
type Op string

// The operations.
const (
	OpCharge  Op = "charge"
	OpCharged Op = "charged"
	OpRefund  Op = "refund"
)

// Request is a request as the rules of behaviour see it.
type Request struct {
	Op  Op
	Key string // the idempotency key, or the charge that is asked for
	N   int    // counts the requests of this operation with this key, from 1
}

// Behaviour is what goes wrong with a request. The zero value is nothing.
type Behaviour struct {
	// Fail answers 500 and does nothing.
	Fail bool
	// Hang does and answers nothing until the client leaves.
	Hang bool
	// Lose does what is asked for and then cuts the connection, without an answer.
	Lose bool
}

// Misbehave sets the rule by which requests over HTTP are treated from now on;
// nil treats all of them well. It is asked once for each request, by several
// goroutines at once, and may itself wait, which holds the request. It is done all the
// same if the client has left meanwhile, as where a request was stuck on its way.
func (p *Provider) Misbehave(rule func(Request) Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behave = rule
}

// count counts a request.
func (p *Provider) count(op Op, key string) Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := Request{Op: op, Key: key}
	p.arrived[r]++
	r.N = p.arrived[r]
	return r
}

// treat says what to do with a request.
func (p *Provider) treat(r Request) Behaviour {
	p.mu.Lock()
	rule := p.behave
	p.mu.Unlock() // the rule may wait
	if rule == nil {
		return Behaviour{}
	}
	return rule(r)
}

// Chances is a rule that lets a share of the requests go wrong. The same seed
// treats the same request in the same way, whatever else there is.
type Chances struct {
	Seed             uint64
	Fail, Lose, Hang float64 // shares; together at most 1
}

// Behave is a rule for [Provider.Misbehave].
func (c Chances) Behave(r Request) Behaviour {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d %s", r.Op, r.N, r.Key) // a hash never fails
	draw := rand.New(rand.NewPCG(c.Seed, h.Sum64())).Float64()
	switch {
	case draw < c.Fail:
		return Behaviour{Fail: true}
	case draw < c.Fail+c.Lose:
		return Behaviour{Lose: true}
	case draw < c.Fail+c.Lose+c.Hang:
		return Behaviour{Hang: true}
	}
	return Behaviour{}
}

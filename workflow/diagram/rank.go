package diagram

import "slices"

// The layout follows Sugiyama, Tagawa and Toda (1981): break the cycles, give
// every node a rank, order the ranks so that few links cross, and move the nodes
// to where their links are straight. Ranks with nodes alternate with ranks of
// labels, so that a label has a place of its own, like a node. Graphviz was measured
// and is slower, see docs/decisions/0002-dependencies.md.

// node has a place in the layout: a state, a label, or a point that a long link
// passes. Its extents are across the direction of the diagram, and along it.
type node struct {
	rank, index   int
	at            float64 // of the centre, across
	before, after float64 // what it needs on either side of the centre
	along         float64 // what it needs along the diagram, in all
	point         bool    // of a link, not a state
	up, down      []*node // its neighbours in the ranks beside it
}

// link leads from one node to another one.
type link struct {
	from, to *node
	label    *node
	back     bool    // it leads to a lower rank
	chain    []*node // from the lower rank to the higher, both ends included
}

type layout struct {
	nodes []*node // the states, first of all the start
	links []*link
	ranks [][]*node
}

// arrange gives everything a rank and a place across. It returns nil if the
// links have more pieces than a picture holds.
func arrange(nodes []*node, links []*link) *layout {
	l := &layout{nodes: nodes, links: links}
	l.breakCycles()
	l.rank()
	if l.pieces() > maxPieces {
		return nil
	}
	l.connect()
	l.order()
	l.place()
	return l
}

// breakCycles marks the links that lead back to where one has come from.
func (l *layout) breakCycles() {
	const (
		new = iota
		open
		done
	)
	state := map[*node]int{}
	var visit func(*node)
	visit = func(n *node) {
		state[n] = open
		for _, k := range l.links {
			if k.from != n {
				continue
			}
			switch state[k.to] {
			case open:
				k.back = true
			case new:
				visit(k.to)
			}
		}
		state[n] = done
	}
	for _, n := range l.nodes {
		if state[n] == new {
			visit(n)
		}
	}
}

func (k *link) ends() (upper, lower *node) {
	if k.back {
		return k.to, k.from
	}
	return k.from, k.to
}

// rank assigns each node the length of the longest path to it. It ends because the graph has no cycles here.
func (l *layout) rank() {
	for changed := true; changed; {
		changed = false
		for _, k := range l.links {
			if upper, lower := k.ends(); lower.rank < upper.rank+2 {
				lower.rank = upper.rank + 2
				changed = true
			}
		}
	}
}

// pieces counts those into which connect cuts the links.
func (l *layout) pieces() int {
	n := 0
	for _, k := range l.links {
		upper, lower := k.ends()
		n += lower.rank - upper.rank
	}
	return n
}

// connect cuts the links into pieces from rank to rank. The label stands next to
// the state that the link leaves.
func (l *layout) connect() {
	for _, k := range l.links {
		upper, lower := k.ends()
		k.chain = []*node{upper}
		for r := upper.rank + 1; r < lower.rank; r++ {
			n := &node{rank: r, before: 5, after: 5, point: true}
			if k.label != nil && (!k.back && r == upper.rank+1 || k.back && r == lower.rank-1) {
				n = k.label
				n.rank, n.point = r, true
			}
			k.chain = append(k.chain, n)
		}
		k.chain = append(k.chain, lower)
		for i, n := range k.chain[1:] {
			n.up = append(n.up, k.chain[i])
			k.chain[i].down = append(k.chain[i].down, n)
		}
	}
	seen := map[*node]bool{}
	var enter func(*node)
	enter = func(n *node) { // in the order in which one meets them from the start
		if seen[n] {
			return
		}
		seen[n] = true
		for len(l.ranks) <= n.rank {
			l.ranks = append(l.ranks, nil)
		}
		n.index = len(l.ranks[n.rank])
		l.ranks[n.rank] = append(l.ranks[n.rank], n)
		for _, d := range n.down {
			enter(d)
		}
	}
	for _, n := range l.nodes {
		enter(n)
	}
}

const (
	// sweeps bounds the search for a better order; it hardly gets better after ten.
	sweeps = 24
	// maxSteps bounds it in comparisons of two links.
	maxSteps = 200_000_000
)

// affordable is the number of sweeps that maxSteps allows.
func (l *layout) affordable() int {
	steps := 1
	for _, rank := range l.ranks {
		links, squares := 0, 0
		for _, n := range rank {
			up, down := len(n.up), len(n.down)
			links += down
			squares += up*up + down*down
		}
		// crossings compares all pairs, and a round of exchange at most twice the squares.
		steps += (len(rank)*len(rank)+links*links)/2 + sweeps*2*squares
	}
	return min(sweeps, maxSteps/steps)
}

// order moves every node to the mean place of its neighbours in the rank above,
// then in the rank below, and so on, and keeps the best order that it met.
func (l *layout) order() {
	affordable := l.affordable()
	if affordable == 0 {
		return
	}
	best, crossings := l.snapshot(), l.crossings()
	for sweep := range affordable {
		if crossings == 0 {
			break
		}
		l.sweep(sweep%2 == 0)
		l.exchange()
		if c := l.crossings(); c < crossings {
			best, crossings = l.snapshot(), c
		}
	}
	l.ranks = best
	for _, rank := range l.ranks {
		number(rank)
	}
}

func (l *layout) snapshot() [][]*node {
	var ranks [][]*node
	for _, r := range l.ranks {
		ranks = append(ranks, slices.Clone(r))
	}
	return ranks
}

func number(rank []*node) {
	for i, n := range rank {
		n.index = i
	}
}

func (l *layout) sweep(down bool) {
	for i := range l.ranks {
		rank := l.ranks[i]
		if !down {
			rank = l.ranks[len(l.ranks)-1-i]
		}
		mean := map[*node]float64{}
		for _, n := range rank {
			neighbours := n.up
			if !down {
				neighbours = n.down
			}
			mean[n] = float64(n.index)
			if len(neighbours) > 0 {
				sum := 0
				for _, m := range neighbours {
					sum += m.index
				}
				mean[n] = float64(sum) / float64(len(neighbours))
			}
		}
		slices.SortStableFunc(rank, func(a, b *node) int {
			switch {
			case mean[a] < mean[b]:
				return -1
			case mean[a] > mean[b]:
				return 1
			default:
				return 0
			}
		})
		number(rank)
	}
}

// exchange swaps neighbours while that saves crossings.
func (l *layout) exchange() {
	for improved, round := true, 0; improved && round < sweeps; round++ {
		improved = false
		for _, rank := range l.ranks {
			for i := 1; i < len(rank); i++ {
				a, b := rank[i-1], rank[i]
				now := crossing(a.up, b.up) + crossing(a.down, b.down)
				swapped := crossing(b.up, a.up) + crossing(b.down, a.down)
				if swapped < now {
					rank[i-1], rank[i] = b, a
					a.index, b.index = i, i-1
					improved = true
				}
			}
		}
	}
}

// crossing counts the links of two nodes, the first left of the second, that
// cross on the way to their neighbours in one rank.
func crossing(left, right []*node) int {
	n := 0
	for _, a := range left {
		for _, b := range right {
			if a.index > b.index {
				n++
			}
		}
	}
	return n
}

func (l *layout) crossings() int {
	n := 0
	for _, rank := range l.ranks {
		for i, a := range rank {
			for _, b := range rank[i+1:] {
				n += crossing(a.down, b.down)
			}
		}
	}
	return n
}

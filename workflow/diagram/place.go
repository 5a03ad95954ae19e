package diagram

import "math"

const (
	spaceBetween = 18.0 // of two nodes of a rank
	rounds       = 80   // of moving nodes towards their neighbours
	// straightenings let a link that was in another's way give way first.
	straightenings = 6
)

// place moves every node towards the mean of its neighbours, rank by rank, as
// far as the others of its rank let it, until they hardly move. The pieces of a
// long link pull harder, so that it comes out straight.
func (l *layout) place() {
	for _, rank := range l.ranks {
		at := 0.0
		for i, n := range rank {
			if i > 0 {
				at += distance(rank[i-1], n)
			}
			n.at = at
		}
		for _, n := range rank {
			n.at -= at / 2
		}
	}
	for round := range rounds {
		for i := range l.ranks {
			rank := l.ranks[i]
			if round%2 == 1 {
				rank = l.ranks[len(l.ranks)-1-i]
			}
			settle(rank)
		}
	}
	for range straightenings {
		for _, k := range l.links {
			l.straighten(k.chain[1 : len(k.chain)-1])
		}
	}
	least := math.Inf(1)
	for _, rank := range l.ranks {
		for _, n := range rank {
			least = min(least, n.at-n.before)
		}
	}
	for _, rank := range l.ranks {
		for _, n := range rank {
			n.at -= least
		}
	}
}

func distance(left, right *node) float64 { return left.after + spaceBetween + right.before }

// settle puts the nodes of a rank where the sum of the squared, weighted
// distances to their neighbours is least, in their order and without touching.
// That is an isotonic regression, solved by pooling adjacent violators: nodes
// that want to be on the wrong side of each other move as one block.
func settle(rank []*node) {
	type block struct {
		wanted, weight float64 // of the first node, with the others at their distances
		nodes          int
	}
	var blocks []block
	offset := 0.0 // of the node from the first one, when the rank is packed
	for i, n := range rank {
		if i > 0 {
			offset += distance(rank[i-1], n)
		}
		wanted, weight := pull(n)
		blocks = append(blocks, block{wanted - offset, weight, 1})
		for len(blocks) > 1 && blocks[len(blocks)-2].wanted > blocks[len(blocks)-1].wanted {
			a, b := blocks[len(blocks)-2], blocks[len(blocks)-1]
			weight := a.weight + b.weight
			blocks = append(blocks[:len(blocks)-2],
				block{(a.wanted*a.weight + b.wanted*b.weight) / weight, weight, a.nodes + b.nodes})
		}
	}
	offset = 0
	i := 0
	for _, b := range blocks {
		for range b.nodes {
			if i > 0 {
				offset += distance(rank[i-1], rank[i])
			}
			rank[i].at = b.wanted + offset
			i++
		}
	}
}

// straighten puts the points of a link under each other, as many at a time as
// the other nodes of their ranks leave room for.
func (l *layout) straighten(points []*node) {
	for len(points) > 0 {
		low, high := l.room(points[0])
		sum, run := points[0].at, 1
		for _, n := range points[1:] {
			a, b := l.room(n)
			if max(a, low) > min(b, high) {
				break
			}
			low, high = max(a, low), min(b, high)
			sum += n.at
			run++
		}
		at := max(min(sum/float64(run), high), low)
		for _, n := range points[:run] {
			n.at = at
		}
		points = points[run:]
	}
}

// room is how far a node can move without its neighbours in the rank.
func (l *layout) room(n *node) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	rank := l.ranks[n.rank]
	if n.index > 0 {
		low = rank[n.index-1].at + distance(rank[n.index-1], n)
	}
	if n.index < len(rank)-1 {
		high = rank[n.index+1].at - distance(n, rank[n.index+1])
	}
	return low, high
}

// pull is where the neighbours of a node want it, and how much.
func pull(n *node) (at, weight float64) {
	for _, neighbours := range [][]*node{n.up, n.down} {
		for _, m := range neighbours {
			w := 1.0
			switch {
			case n.point && m.point:
				w = 8
			case n.point || m.point:
				w = 2
			}
			at += w * m.at
			weight += w
		}
	}
	if weight == 0 {
		return n.at, 0.1
	}
	return at / weight, weight
}

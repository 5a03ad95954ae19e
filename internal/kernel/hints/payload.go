package hints

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// A payload is the sender's name, a blank, and what the hint is about:
//
//	h <head> <tenant>        a log has grown
//	c <base64 of hashes>     commands have changed; a hash is 8 bytes, the highest first
//	d                        there is work for others
//	s                        a sink has been given back or changed
//	b                        new instances begin with another version
//
// PostgreSQL takes payloads of less than 8,000 bytes.
const (
	headTopic    = "h"
	changedTopic = "c"
	dueTopic     = "d"
	sinksTopic   = "s"
	beginsTopic  = "b"
)

const (
	hashSize = 8
	// pieceSize is how many hashes go into one payload: 7,467 bytes of base64.
	pieceSize = 700
)

// payloads renders the hints.
func (n pendingHints) payloads(node string) []string {
	var list []string
	add := func(topic, text string) { list = append(list, node+" "+topic+" "+text) }
	for tenant, head := range n.heads {
		add(headTopic, strconv.FormatInt(head, 10)+" "+tenant)
	}
	slices.Sort(n.commands)
	for piece := range slices.Chunk(slices.Compact(n.commands), pieceSize) {
		raw := make([]byte, 0, hashSize*pieceSize)
		for _, hash := range piece {
			raw = binary.BigEndian.AppendUint64(raw, hash)
		}
		add(changedTopic, base64.RawStdEncoding.EncodeToString(raw))
	}
	if n.due {
		add(dueTopic, "")
	}
	if n.sinks {
		add(sinksTopic, "")
	}
	if n.begins {
		add(beginsTopic, "")
	}
	return list
}

// hint is one payload as it was heard.
type hint struct {
	node, topic string
	tenant      string
	head        int64
	commands    []uint64
}

// parse reads a payload. Anybody may send what he likes, so it may be anything.
func parse(payload string) (h hint, ok bool) {
	node, rest, _ := strings.Cut(payload, " ")
	topic, text, _ := strings.Cut(rest, " ")
	h = hint{node: node, topic: topic}
	switch topic {
	case headTopic:
		head, tenant, found := strings.Cut(text, " ")
		position, err := strconv.ParseInt(head, 10, 64)
		h.tenant, h.head = tenant, position
		return h, found && err == nil
	case changedTopic:
		raw, err := base64.RawStdEncoding.DecodeString(text)
		for piece := range slices.Chunk(raw, hashSize) {
			if len(piece) == hashSize {
				h.commands = append(h.commands, binary.BigEndian.Uint64(piece))
			}
		}
		return h, err == nil && len(raw) > 0 && len(raw)%hashSize == 0
	case dueTopic, sinksTopic, beginsTopic:
		return h, text == ""
	}
	return h, false
}

// pass hands the hint on.
func (h *hint) pass(l Listener) {
	switch h.topic {
	case headTopic:
		l.Head(h.tenant, h.head)
	case changedTopic:
		l.Changed(h.commands)
	case dueTopic:
		l.Due()
	case sinksTopic:
		l.Sinks()
	case beginsTopic:
		if l.Begins != nil {
			l.Begins()
		}
	}
}

package notify

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// A payload is the name of the sender's exchange, a topic, and the topic's text, separated by spaces:
//
//	h <head> <tenant>      a log has grown
//	c <base64 of hashes>   commands have changed; a hash has 8 bytes, big-endian
//	d                      there is work for other nodes
//	s                      a sink was released or changed
//	b                      the default version of a workflow has changed
//
// PostgreSQL limits a payload to 7,999 bytes.
const (
	headTopic    = "h"
	changedTopic = "c"
	dueTopic     = "d"
	sinksTopic   = "s"
	beginsTopic  = "b"
)

const (
	hashSize = 8
	// pieceSize is the number of hashes in one payload: 7,467 bytes of base64.
	pieceSize = 700
)

func (n pending) payloads(node string) []string {
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

// notification is a received payload.
type notification struct {
	node, topic string
	tenant      string
	head        int64
	commands    []uint64
}

// parse parses a payload. Any role can send any text on the channel.
func parse(payload string) (h notification, ok bool) {
	node, rest, _ := strings.Cut(payload, " ")
	topic, text, _ := strings.Cut(rest, " ")
	h = notification{node: node, topic: topic}
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

func (h *notification) deliver(l Listener) {
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

package audit

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/pawlhq/pawl/transitions"
)

// chainLabel begins every hash, so that one of another format cannot be taken
// for it.
const chainLabel = "pawl.audit.1"

// Link is the hash of an entry that follows the entry with hash prev (all zero
// for an instance's first): SHA-256 over prev and every field of the entry but
// its position. Payload and data enter as their own SHA-256, so that they can be
// redacted. The position does not enter, because the database gives it while
// the entry is written.
func Link(prev [32]byte, e *transitions.Entry) [32]byte {
	return link(prev, e, sha256.Sum256(e.Payload), sha256.Sum256(e.Data))
}

func link(prev [32]byte, e *transitions.Entry, payload, data [32]byte) [32]byte {
	b := make([]byte, 0, 512)
	b = append(b, chainLabel...)
	b = append(b, prev[:]...)
	b = append(b, e.Instance[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Version))
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro()))
	b = append(b, payload[:]...)
	b = append(b, data[:]...)
	for _, s := range [...]string{e.Tenant, e.Workflow, e.Transition, string(e.From), string(e.To), e.Actor, e.Reason, e.Scope, e.Key} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

package audit

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/pawlhq/pawl/transitions"
)

// chainLabel starts every hash, to separate it from other formats.
const chainLabel = "pawl.audit.3"

// Link returns the hash of an entry that follows the entry with hash prev (zero for an instance's first): SHA-256 over prev, the digests of
// the instance before and after it, the emitted events, and every field except the position, which the database assigns later. Payload and
// data enter as their own SHA-256, so that they can be redacted.
func Link(prev [32]byte, e *transitions.Entry) [32]byte {
	return LinkTo(prev, e, sha256.Sum256(e.Payload))
}

// LinkTo is Link with the digest of the payload.
func LinkTo(prev [32]byte, e *transitions.Entry, payload [32]byte) [32]byte {
	b := make([]byte, 0, 512)
	b = append(b, chainLabel...)
	b = append(b, prev[:]...)
	b = append(b, e.Before[:]...)
	b = append(b, e.After[:]...)
	b = append(b, payload[:]...)
	b = append(b, e.Instance[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Version))
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro()))
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Emitted)))
	b = append(b, e.Emitted...)
	for _, s := range [...]string{e.Tenant, e.Workflow, e.Transition, string(e.From), string(e.To), e.Actor, e.Reason, e.Scope, e.Key,
		string(e.Cause), e.Proof} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return sha256.Sum256(b)
}

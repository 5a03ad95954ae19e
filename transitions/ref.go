package transitions

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Ref names a command.
type Ref struct{ Tenant, Scope, Key string }

// Hash is what a command is called among nodes: the FNV-1a hash of its name, each
// part ended by a NUL, which none contains. Two commands can have one hash: it is
// for hints only.
func (r Ref) Hash() uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, part := range [...]string{r.Tenant, r.Scope, r.Key} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * prime
		}
		h *= prime
	}
	return h
}

// EffectKey names the effect of a command's activity: 40 hexadecimal digits of
// the SHA-256 over tenant, scope and key.
func EffectKey(r Ref) string {
	buf := make([]byte, 0, 256)
	for _, part := range []string{r.Tenant, r.Scope, r.Key} {
		buf = strconv.AppendInt(buf, int64(len(part)), 10)
		buf = append(buf, ':')
		buf = append(buf, part...)
	}
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:20])
}

// The names that are Pawl's own begin with this: scopes of the commands that it
// makes, and their actors.
const Reserved = "pawl:"

// ReservedPrefix returns the prefix by which a scope or an actor is reserved: for Pawl's own commands, or for messages, whose keys are
// those of their senders. It returns "" for a name that a caller may have.
func ReservedPrefix(name string) string {
	for _, prefix := range []string{Reserved, inboxScope} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

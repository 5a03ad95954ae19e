package transitions

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/workflow"
)

// Ref identifies a command.
type Ref struct{ Tenant, Scope, Key string }

// Hash identifies a command in notifications: the FNV-1a hash of its parts, each ended by a NUL. Two commands can have the same hash.
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

// EffectKey returns the key of an activity's effect: 40 hexadecimal digits of the SHA-256 of tenant, scope and key.
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

// Prefix of the scopes and actors of Pawl's own commands.
const Reserved = "pawl:"

// ReservedPrefix returns the reserved prefix of a scope or an actor, of Pawl's own commands or of
// messages, or "" if callers may use it.
func ReservedPrefix(name string) string {
	for _, prefix := range []string{Reserved, inboxScope} {
		if strings.HasPrefix(name, prefix) {
			return prefix
		}
	}
	return ""
}

// UnknownBusinessKey returns the error for a business key without an instance.
func UnknownBusinessKey(workflowName, businessKey string) *workflow.Error {
	return workflow.Errorf(workflow.InstanceNotFound, "workflow %q has no instance with the business key %q", workflowName, businessKey)
}

// UnknownCommand returns the error for a scope and key without a command.
func UnknownCommand() *workflow.Error {
	return workflow.Errorf(workflow.CommandNotFound, "no command has this scope and key")
}

// InstanceID calls [workflow.InstanceID].
func InstanceID(tenant, workflowName, businessKey string) uuid.UUID {
	return workflow.InstanceID(tenant, workflowName, businessKey)
}

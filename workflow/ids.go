package workflow

import (
	"crypto/sha256"
	"strconv"

	"github.com/google/uuid"
)

// InstanceID is the id of the instance that a business key names: a UUIDv8
// (RFC 9562, section 5.8) of the SHA-256 over tenant, workflow and key. So
// natural uniqueness is the primary key, and a key needs no look-up.
func InstanceID(tenant, workflowName, businessKey string) uuid.UUID {
	buf := make([]byte, 0, 128)
	for _, part := range []string{tenant, workflowName, businessKey} {
		buf = strconv.AppendInt(buf, int64(len(part)), 10)
		buf = append(buf, ':')
		buf = append(buf, part...)
	}
	sum := sha256.Sum256(buf)
	var id uuid.UUID
	copy(id[:], sum[:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"github.com/pawlhq/pawl/auth"
)

// The parts of a key's text: prefix, id, "_", secret, checksum.
const (
	Prefix = "pawl_"

	alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idLength       = 12
	secretLength   = 30 // 178 bits
	checksumLength = 6

	beforeSecret   = len(Prefix) + idLength + 1
	beforeChecksum = beforeSecret + secretLength
	textLength     = beforeChecksum + checksumLength
)

// Hash is what is kept of a secret. A slow hash, as for passwords, would be for secrets that can be
// guessed: of 178 random bits nobody tries out a part that counts, however quick each try is.
type Hash [sha256.Size]byte

// newID makes the id of a key.
func newID() string { return random(idLength) }

// newText makes a text for a key, and what is kept of it.
func newText(id string) (text string, h Hash) {
	secret := random(secretLength)
	text = Prefix + id + "_" + secret
	return text + checksum(text), sha256.Sum256([]byte(secret))
}

// random is so many characters of the alphabet, each as likely as the others.
func random(n int) string {
	var b strings.Builder
	for b.Len() < n {
		var raw [64]byte
		_, _ = rand.Read(raw[:]) // it never fails
		for _, c := range raw {
			if fair := 256 / len(alphabet) * len(alphabet); int(c) < fair && b.Len() < n {
				b.WriteByte(alphabet[int(c)%len(alphabet)])
			}
		}
	}
	return b.String()
}

// checksum is the CRC-32 of what stands before it. One character that is wrong, or two that have changed
// places, it always tells.
func checksum(text string) string {
	n := crc32.ChecksumIEEE([]byte(text))
	var b [checksumLength]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = alphabet[n%uint32(len(alphabet))]
		n /= uint32(len(alphabet))
	}
	return string(b[:])
}

var errMalformed = auth.Refuse(auth.Malformed, "this is no API key: a part of it is missing or mistyped")

// parse reads a text. Error: Unauthorized for what no key has.
func parse(text string) (id string, h Hash, err error) {
	if len(text) != textLength || text[:len(Prefix)] != Prefix || text[beforeSecret-1] != '_' {
		return "", h, errMalformed
	}
	id, secret := text[len(Prefix):beforeSecret-1], text[beforeSecret:beforeChecksum]
	if !isRandom(id) || !isRandom(secret) || checksum(text[:beforeChecksum]) != text[beforeChecksum:] {
		return "", h, errMalformed
	}
	return id, sha256.Sum256([]byte(secret)), nil
}

// isRandom reports whether a text has no other characters than random makes.
func isRandom(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(alphabet, c) })
}

// IsID reports whether a key can have an id.
func IsID(s string) bool { return len(s) == idLength && isRandom(s) }

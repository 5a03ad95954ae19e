package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"

	"github.com/pawlhq/pawl/auth"
)

// Parts of a key's text: prefix, id, "_", secret, checksum.
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

// Hash is the stored hash of a secret. Slow password hashes are for guessable secrets; 178 random bits cannot be guessed at any speed.
type Hash [sha256.Size]byte

// newID returns a random key id.
func newID() string { return random(idLength) }

// newText returns a new text for a key, and its hash.
func newText(id string) (text string, h Hash) {
	secret := random(secretLength)
	text = Prefix + id + "_" + secret
	return text + checksum(text), sha256.Sum256([]byte(secret))
}

// random returns n uniformly random characters of the alphabet.
func random(n int) string {
	var b strings.Builder
	for b.Len() < n {
		var raw [64]byte
		_, _ = rand.Read(raw[:]) // never fails
		for _, c := range raw {
			if fair := 256 / len(alphabet) * len(alphabet); int(c) < fair && b.Len() < n {
				b.WriteByte(alphabet[int(c)%len(alphabet)])
			}
		}
	}
	return b.String()
}

// checksum returns the CRC-32 of a text. It detects every single wrong character and every swap of neighbours.
func checksum(text string) string {
	n := crc32.ChecksumIEEE([]byte(text))
	var b [checksumLength]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = alphabet[n%uint32(len(alphabet))]
		n /= uint32(len(alphabet))
	}
	return string(b[:])
}

var errMalformed = auth.Refuse(auth.Malformed, "malformed API key: a part is missing or mistyped")

// parse parses a text. Error: Unauthorized for malformed texts.
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

// isRandom reports whether a text only has characters of the alphabet.
func isRandom(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return !strings.ContainsRune(alphabet, c) })
}

// IsID reports whether id is well-formed.
func IsID(s string) bool { return len(s) == idLength && isRandom(s) }

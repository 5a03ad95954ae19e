package apikey

import (
	"context"
	"crypto/sha256"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/auth"
)

// scanned is the pattern for scanners in docs/authentication.md.
var scanned = regexp.MustCompile(`^pawl_[0-9A-Za-z]{12}_[0-9A-Za-z]{36}$`)

func TestTextRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		text, hash := newText(id)
		got, read, err := parse(text)
		require.Truef(t, err == nil && got == id && read == hash && IsID(id) && scanned.MatchString(text) && !seen[text],
			"%q: %q, %v", text, got, err)
		seen[text] = true
	}
}

func TestMistypedTextIsRejected(t *testing.T) {
	good, _ := newText(newID())
	read := func(text string) {
		t.Helper()
		id, _, err := parse(text)
		assert.Falsef(t, text != good && err == nil, "%q is read as %q", text, id)
	}
	for i := range good {
		for _, c := range alphabet + "_-. \n\x00é" {
			read(good[:i] + string(c) + good[i+1:])
			read(good[:i] + string(c) + good[i:])
		}
		read(good[:i] + good[i+1:])
		read(good[:i])
		if i > 0 {
			read(good[:i-1] + good[i:i+1] + good[i-1:i] + good[i+1:]) // swapped neighbours
		}
	}
	read(good + "\n")
	read(" " + good)
	read(strings.ToUpper(good))
	read(strings.ToLower(good))
}

// Texts are canonical.
func FuzzParse(f *testing.F) {
	good, _ := newText("0123456789Ab")
	f.Add(good)
	f.Add("pawl_0123456789Ab_0123456789012345678901234567890000000")
	f.Fuzz(func(t *testing.T, text string) {
		id, hash, err := parse(text)
		if err != nil {
			assert.Truef(t, id == "" && hash == (Hash{}), "%q is refused, and read as %q", text, id)
			return
		}
		secret := strings.TrimPrefix(text, Prefix+id+"_")[:secretLength]
		begin := Prefix + id + "_" + secret
		assert.Truef(t, scanned.MatchString(text) && text == begin+checksum(begin) && hash == sha256.Sum256([]byte(secret)),
			"%q is read as %q", text, id)
	})
}

// Only one text is accepted.
func FuzzVerify(f *testing.F) {
	k := Key{ID: newID(), Tenant: "acme", Actor: "ann", Grants: auth.Grants{{Right: auth.Read}}}
	good, hash := newText(k.ID)
	k.hash = hash
	v := NewVerifier(nil, Config{}) // not started, without a database
	v.looked.Store(time.Now().Add(time.Hour).UnixNano())
	v.cache.put(k)
	f.Add(good)
	f.Add(good[:len(good)-1] + "0")
	another, _ := newText(k.ID)
	f.Add(another)
	ended, end := context.WithCancel(context.Background())
	end()
	f.Fuzz(func(t *testing.T, text string) {
		p, err := v.Verify(ended, text)
		assert.Truef(t, (err == nil) == (text == good) && (err == nil || p.Actor == ""), "%q: %+v, %v", text, p, err)
	})
}

// reasonOf returns the reason of a rejection; "" for other errors.
func reasonOf(err error) auth.Reason {
	if refusal, is := errors.AsType[*auth.Refusal](err); is {
		return refusal.Reason
	}
	return ""
}

package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is how far a message's timestamp may be from now, either way, if a
// receiver has no reason for another limit.
const Tolerance = 5 * time.Minute

// What is wrong with a message that [Verify] refuses. The errors that it returns
// wrap one of these and say more, and may be shown to the sender.
var (
	// ErrHeaders: a header is missing or malformed.
	ErrHeaders = errors.New("webhook headers")
	// ErrTimestamp: the message is too old, or from the future.
	ErrTimestamp = errors.New("webhook timestamp")
	// ErrSignature: no signature is by one of the secrets.
	ErrSignature = errors.New("webhook signature")
)

// Sign sets the headers of a message, with a signature by each secret: while a
// secret is being replaced, the receiver may know either. The id must not be
// empty or contain a dot, and no secret be the zero Secret.
func Sign(secrets []Secret, h http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		signatures[i] = s.sign(id, timestamp, body)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// CheckHeaders checks what the headers of a message say of it, so that a receiver reads no body that [Verify] would refuse whatever it
// is. The error is an [ErrHeaders], [ErrTimestamp] or [ErrSignature].
func CheckHeaders(h http.Header, now time.Time, tolerance time.Duration) error {
	_, _, signatures, err := read(h, now, tolerance)
	if err == nil && !slices.ContainsFunc(signatures, isSignature) {
		err = refusal(signatures)
	}
	return err
}

// isSignature reports whether a text has the form of a signature.
func isSignature(text string) bool {
	encoded, is := strings.CutPrefix(text, scheme)
	mac, err := base64.StdEncoding.DecodeString(encoded)
	return is && err == nil && len(mac) == sha256.Size
}

// Verify checks a message that was received and returns its id, by which a
// repetition is recognized. One signature by one of the secrets is enough. The
// body must be the bytes as they came. Comparing takes the same time wherever a
// signature differs. The error is an [ErrHeaders], [ErrTimestamp] or
// [ErrSignature].
func Verify(secrets []Secret, h http.Header, body []byte, now time.Time, tolerance time.Duration) (id string, err error) {
	id, timestamp, signatures, err := read(h, now, tolerance)
	if err != nil {
		return "", err
	}
	for _, s := range secrets {
		if s.IsZero() {
			continue
		}
		want := []byte(s.sign(id, timestamp, body))
		for _, signature := range signatures {
			if hmac.Equal([]byte(signature), want) {
				return id, nil
			}
		}
	}
	return "", refusal(signatures)
}

// read reads the headers of a message of now.
func read(h http.Header, now time.Time, tolerance time.Duration) (id, timestamp string, signatures []string, err error) {
	id, timestamp = h.Get(HeaderID), h.Get(HeaderTimestamp)
	signatures = strings.Fields(h.Get(HeaderSignature))
	at, ok := parseTimestamp(timestamp)
	switch {
	case id == "":
		err = missing(HeaderID)
	case timestamp == "":
		err = missing(HeaderTimestamp)
	case len(signatures) == 0:
		err = missing(HeaderSignature)
	case strings.Contains(id, "."): // it could take in a part of the timestamp or the body
		err = fmt.Errorf("%w: %s contains a dot", ErrHeaders, HeaderID)
	case !ok:
		err = fmt.Errorf("%w: %s is not a number of seconds since 1970", ErrHeaders, HeaderTimestamp)
	default:
		err = checkAge(now.Sub(at), tolerance)
	}
	return id, timestamp, signatures, err
}

func missing(name string) error { return fmt.Errorf("%w: %s is missing", ErrHeaders, name) }

// checkAge says whether a message is of now.
func checkAge(age, tolerance time.Duration) error {
	if age >= -tolerance && age <= tolerance {
		return nil
	}
	which := "old"
	if age < 0 {
		which = "ahead"
	}
	return fmt.Errorf("%w: the message is %s %s, and the limit is %s; compare the clocks, and sign anew what is sent again",
		ErrTimestamp, age.Abs().Round(time.Second), which, tolerance)
}

// refusal says why none of the signatures can be right, as far as that does not
// help who guesses.
func refusal(signatures []string) error {
	for _, s := range signatures {
		if strings.HasPrefix(s, scheme) {
			return fmt.Errorf("%w: none is by a secret that is known here; the secret may differ, or the body was changed on the way", ErrSignature)
		}
	}
	return fmt.Errorf("%w: none is of version v1 (HMAC-SHA-256)", ErrSignature)
}

// parseTimestamp reads seconds since 1970, written in the one way that there is.
func parseTimestamp(s string) (time.Time, bool) {
	seconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil || seconds < 0 || len(s) > 11 || strconv.FormatInt(seconds, 10) != s {
		return time.Time{}, false
	}
	return time.Unix(seconds, 0), true
}

package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is the default limit for the difference between a message's timestamp and the current
// time.
const Tolerance = 5 * time.Minute

// Reasons for which [Verify] rejects a message. Its errors wrap one of these with details and may
// be shown to the sender.
var (
	// ErrHeaders reports a missing or malformed header.
	ErrHeaders = errors.New("webhook headers")
	// ErrTimestamp reports a message that is too old or from the future.
	ErrTimestamp = errors.New("webhook timestamp")
	// ErrSignature reports that no signature matches a secret.
	ErrSignature = errors.New("webhook signature")
)

// Sign sets the headers of a message with a signature by each secret, so that the receiver may know
// either during a rotation. The id must not be empty or contain a dot, and no secret may be the
// zero Secret.
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

// CheckHeaders validates the headers of a message, so that receivers need not read a body that
// [Verify] would reject in any case. It returns an [ErrHeaders], [ErrTimestamp] or [ErrSignature].
func CheckHeaders(h http.Header, now time.Time, tolerance time.Duration) error {
	_, _, signatures, err := read(h, now, tolerance)
	if err != nil {
		return err
	}
	for _, text := range signatures {
		encoded, is := strings.CutPrefix(text, scheme)
		if mac, err := base64.StdEncoding.DecodeString(encoded); is && err == nil && len(mac) == sha256.Size {
			return nil
		}
	}
	return refusal(signatures)
}

// Verify verifies a message and returns its id, which identifies repetitions. One signature by one
// of the secrets is sufficient. The body must be unmodified. Signatures are compared in constant
// time. The error is an [ErrHeaders], [ErrTimestamp] or [ErrSignature].
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

// read parses the headers of a message and checks its age.
func read(h http.Header, now time.Time, tolerance time.Duration) (id, timestamp string, signatures []string, err error) {
	id, timestamp = h.Get(HeaderID), h.Get(HeaderTimestamp)
	signatures = strings.Fields(h.Get(HeaderSignature))
	seconds, wrong := strconv.ParseInt(timestamp, 10, 64)
	canonical := wrong == nil && seconds >= 0 && len(timestamp) <= 11 && strconv.FormatInt(seconds, 10) == timestamp
	age := now.Sub(time.Unix(seconds, 0))
	switch {
	case id == "":
		err = missing(HeaderID)
	case timestamp == "":
		err = missing(HeaderTimestamp)
	case len(signatures) == 0:
		err = missing(HeaderSignature)
	case strings.Contains(id, "."): // the id could include part of the timestamp or the body
		err = fmt.Errorf("%w: %s contains a dot", ErrHeaders, HeaderID)
	case !canonical:
		err = fmt.Errorf("%w: %s is not a number of seconds since 1970", ErrHeaders, HeaderTimestamp)
	case age > tolerance:
		err = fmt.Errorf(wrongAge, ErrTimestamp, age.Round(time.Second), "old", tolerance)
	case age < -tolerance:
		err = fmt.Errorf(wrongAge, ErrTimestamp, -age.Round(time.Second), "ahead", tolerance)
	}
	return id, timestamp, signatures, err
}

func missing(name string) error { return fmt.Errorf("%w: %s is missing", ErrHeaders, name) }

const wrongAge = "%w: the message is %s %s, and the limit is %s; compare the clocks, and sign repeated messages again"

// refusal returns the error for signatures that do not match, without details that help an
// attacker.
func refusal(signatures []string) error {
	for _, s := range signatures {
		if strings.HasPrefix(s, scheme) {
			return fmt.Errorf("%w: no signature matches; the secret may differ, or the body was changed in transit", ErrSignature)
		}
	}
	return fmt.Errorf("%w: no signature has version v1 (HMAC-SHA-256)", ErrSignature)
}

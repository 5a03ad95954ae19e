package signature_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/inbox/signature"
)

const (
	knownSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	knownID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	knownBody      = `{"test": 2432232314}`
	knownSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var knownTime = time.Unix(1614265330, 0)

func parse(t testing.TB, text string) signature.Secret {
	t.Helper()
	s, err := signature.ParseSecret(text)
	require.NoError(t, err)
	return s
}

// The message is from the tests of the Standard Webhooks libraries.
func TestSignMatchesStandardWebhooks(t *testing.T) {
	h := make(http.Header)
	secrets := []signature.Secret{parse(t, knownSecret)}
	signature.Sign(secrets, h, knownID, knownTime, []byte(knownBody))
	assert.Equal(t, knownSignature, h.Get("webhook-signature"), "signature")
	assert.Equal(t, "1614265330", h.Get("webhook-timestamp"), "timestamp")
	id, err := signature.Verify(secrets, h, []byte(knownBody), knownTime, signature.Tolerance)
	assert.Truef(t, id == knownID && err == nil, "verified as %q, %v", id, err)
}

func TestRotationAcceptsBothSecrets(t *testing.T) {
	older, newer := signature.NewSecret(), signature.NewSecret()
	h := make(http.Header)
	signature.Sign([]signature.Secret{newer, older}, h, "m-1", knownTime, []byte(knownBody))
	for name, known := range map[string][]signature.Secret{
		"only the older": {older}, "only the newer": {newer}, "both": {older, newer},
		"another first": {signature.NewSecret(), newer},
	} {
		_, err := signature.Verify(known, h, []byte(knownBody), knownTime, signature.Tolerance)
		assert.NoErrorf(t, err, "a receiver that knows %s", name)
	}
	_, err := signature.Verify([]signature.Secret{signature.NewSecret()}, h, []byte(knownBody), knownTime,
		signature.Tolerance)
	assert.ErrorIs(t, err, signature.ErrSignature, "a receiver that knows neither")
}

func TestVerifyRejectsForgedAndOldMessages(t *testing.T) {
	secrets := []signature.Secret{parse(t, knownSecret)}
	tests := []struct {
		name                     string
		id, timestamp, signature string
		body                     string
		now                      time.Duration // after the timestamp
		want                     error
	}{
		{"as it was signed", knownID, "1614265330", knownSignature, knownBody, 0, nil},
		{"just in time", knownID, "1614265330", knownSignature, knownBody, signature.Tolerance, nil},
		{"a clock that is behind", knownID, "1614265330", knownSignature, knownBody, -signature.Tolerance, nil},
		{"too old", knownID, "1614265330", knownSignature, knownBody, signature.Tolerance + time.Second, signature.ErrTimestamp},
		{"too new", knownID, "1614265330", knownSignature, knownBody, -signature.Tolerance - time.Second, signature.ErrTimestamp},
		{"other body", knownID, "1614265330", knownSignature, knownBody + " ", 0, signature.ErrSignature},
		{"other id", knownID + "x", "1614265330", knownSignature, knownBody, 0, signature.ErrSignature},
		{"other timestamp", knownID, "1614265331", knownSignature, knownBody, 0, signature.ErrSignature},
		{"among other signatures", knownID, "1614265330", "v1a,xyz v2,abc v1, " + knownSignature + " v1,AA==", knownBody, 0, nil},
		{"other scheme", knownID, "1614265330", strings.Replace(knownSignature, "v1,", "v2,", 1), knownBody, 0, signature.ErrSignature},
		{"cut signature", knownID, "1614265330", knownSignature[:20], knownBody, 0, signature.ErrSignature},
		{"no signature", knownID, "1614265330", "", knownBody, 0, signature.ErrHeaders},
		{"no id", "", "1614265330", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"dotted id", knownID + ".1", "1614265330", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"no timestamp", knownID, "", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"signed timestamp", knownID, "+1614265330", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"padded timestamp", knownID, "01614265330", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"negative timestamp", knownID, "-1614265330", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"huge timestamp", knownID, "9223372036854775807", knownSignature, knownBody, 0, signature.ErrHeaders},
		{"distant timestamp", knownID, "99999999999", knownSignature, knownBody, 0, signature.ErrTimestamp},
	}
	for _, tt := range tests {
		h := make(http.Header)
		h.Set(signature.HeaderID, tt.id)
		h.Set(signature.HeaderTimestamp, tt.timestamp)
		h.Set(signature.HeaderSignature, tt.signature)
		id, err := signature.Verify(secrets, h, []byte(tt.body), knownTime.Add(tt.now), signature.Tolerance)
		assert.Truef(t, errors.Is(err, tt.want) && (err == nil) == (id == knownID), "%s: %q, %v, want %v", tt.name, id, err, tt.want)
	}
}

func TestZeroSecretVerifiesNothing(t *testing.T) {
	h := make(http.Header)
	signature.Sign([]signature.Secret{signature.NewSecret()}, h, "m-1", knownTime, nil)
	for _, secrets := range [][]signature.Secret{nil, {{}}} {
		_, err := signature.Verify(secrets, h, nil, knownTime, signature.Tolerance)
		assert.ErrorIsf(t, err, signature.ErrSignature, "with %d secrets", len(secrets))
	}
}

func TestSecretsAreParsedAndHidden(t *testing.T) {
	s := signature.NewSecret()
	assert.Equal(t, s.Reveal(), parse(t, s.Reveal()).Reveal(), "a secret is not what it was revealed as")
	key := strings.TrimPrefix(s.Reveal(), "whsec_")
	raw, err := base64.StdEncoding.DecodeString(key)
	require.NoError(t, err)
	within := struct{ Secrets []signature.Secret }{[]signature.Secret{s}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, value := range []any{s, &s, within, &within} {
			shown := fmt.Sprintf(format, value)
			for _, secret := range []string{key, fmt.Sprint(raw), fmt.Sprintf("%x", raw), fmt.Sprintf("%#v", raw)} {
				assert.NotContainsf(t, shown, strings.Trim(secret, "[]"), "printed with %s as", format)
			}
		}
	}
	for _, text := range []string{"", "whsec_", key, "whsec_" + key + "!", "whsec_AAAA", "whsec_" + strings.Repeat("AAAA", 22),
		"whsk_" + key} {
		if _, err := signature.ParseSecret(text); err == nil {
			t.Errorf("%q is taken for a secret", text)
		} else if strings.Contains(err.Error(), key) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(knownID, "1614265330", knownSignature, []byte(knownBody))
	f.Add("m.1", "-1", "v1,", []byte(nil))
	f.Add("", "99999999999999999999", "v1 v1,v1 ,", []byte("."))
	secrets := []signature.Secret{parse(f, knownSecret)}
	f.Fuzz(func(t *testing.T, id, timestamp, signed string, body []byte) {
		h := make(http.Header)
		h.Set(signature.HeaderID, id)
		h.Set(signature.HeaderTimestamp, timestamp)
		h.Set(signature.HeaderSignature, signed)
		// An attacker without the secret can only replay the message.
		if _, err := signature.Verify(secrets, h, body, knownTime, signature.Tolerance); err == nil &&
			(id != knownID || timestamp != "1614265330" || string(body) != knownBody) {
			t.Errorf("forged: %q %q %q", id, timestamp, body)
		}
		signature.Sign(secrets, h, id, knownTime, body)
		got, err := signature.Verify(secrets, h, body, knownTime, signature.Tolerance)
		plain := id != "" && !strings.Contains(id, ".")
		assert.Truef(t, plain == (err == nil) && (!plain || got == id), "what was signed as %q is verified as %q, %v", id, got, err)
		_, err = signature.Verify(secrets, h, append(bytes.Clone(body), '!'), knownTime, signature.Tolerance)
		assert.Error(t, err, "another body is verified")
	})
}

// Errors help a legitimate sender, but not an attacker.
func TestErrorsShowRemedyAndNoSecret(t *testing.T) {
	secret := parse(t, knownSecret)
	for _, tt := range []struct {
		name string
		edit func(http.Header)
		now  time.Duration
		want string
	}{
		{"no id", func(h http.Header) { h.Del("webhook-id") }, 0, "webhook headers: Webhook-Id is missing"},
		{"no timestamp", func(h http.Header) { h.Del("webhook-timestamp") }, 0, "webhook headers: Webhook-Timestamp is missing"},
		{"no signature", func(h http.Header) { h.Set("webhook-signature", "  ") }, 0, "webhook headers: Webhook-Signature is missing"},
		{"milliseconds", func(h http.Header) { h.Set("webhook-timestamp", "1614265330000") }, 0,
			"webhook headers: Webhook-Timestamp is not a number of seconds since 1970"},
		{"late", nil, 10 * time.Minute,
			"webhook timestamp: the message is 10m0s old, and the limit is 5m0s; compare the clocks, and sign repeated messages again"},
		{"early", nil, -time.Hour,
			"webhook timestamp: the message is 1h0m0s ahead, and the limit is 5m0s; compare the clocks, and sign repeated messages again"},
		{"public key", func(h http.Header) { h.Set("webhook-signature", "v1a,AAAA") }, 0,
			"webhook signature: no signature has version v1 (HMAC-SHA-256)"},
		{"other secret", func(h http.Header) { h.Set("webhook-signature", "v1,AAAA") }, 0,
			"webhook signature: no signature matches; the secret may differ, or the body was changed in transit"},
	} {
		h := make(http.Header)
		signature.Sign([]signature.Secret{secret}, h, knownID, knownTime, []byte(knownBody))
		if tt.edit != nil {
			tt.edit(h)
		}
		_, err := signature.Verify([]signature.Secret{secret}, h, []byte(knownBody), knownTime.Add(tt.now), signature.Tolerance)
		assert.EqualError(t, err, tt.want, tt.name)
	}
}

func FuzzParseSecret(f *testing.F) {
	f.Add(knownSecret)
	f.Add("whsec_")
	f.Add("whsec_AAAA\n")
	f.Add(strings.Repeat("A", 32))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := signature.ParseSecret(text)
		require.Equalf(t, (err != nil), s.IsZero(), "zero, error: %v", err)
		if err != nil {
			return
		}
		again, err := signature.ParseSecret(s.Reveal())
		assert.Truef(t, err == nil && again.Reveal() == s.Reveal(), "revealed as %s, which is read as %v, %v", s.Reveal(), again, err)
	})
}

// Errors in the headers are found without the body.
func TestCheckHeaders(t *testing.T) {
	signed := make(http.Header)
	signature.Sign([]signature.Secret{signature.NewSecret()}, signed, "m-1", knownTime, []byte(knownBody))
	for name, c := range map[string]struct {
		change func(http.Header)
		want   error
	}{
		"whatever the secret is": {func(http.Header) {}, nil},
		"one of several":         {func(h http.Header) { h.Set("Webhook-Signature", "v2,x "+h.Get("Webhook-Signature")) }, nil},
		"no id":                  {func(h http.Header) { h.Del("Webhook-Id") }, signature.ErrHeaders},
		"no time":                {func(h http.Header) { h.Del("Webhook-Timestamp") }, signature.ErrHeaders},
		"no signature":           {func(h http.Header) { h.Del("Webhook-Signature") }, signature.ErrHeaders},
		"old":                    {func(h http.Header) { h.Set("Webhook-Timestamp", "1614260000") }, signature.ErrTimestamp},
		"no base64":              {func(h http.Header) { h.Set("Webhook-Signature", "v1,!") }, signature.ErrSignature},
		"too short":              {func(h http.Header) { h.Set("Webhook-Signature", "v1,QUJD") }, signature.ErrSignature},
		"of another version":     {func(h http.Header) { h.Set("Webhook-Signature", "v2"+h.Get("Webhook-Signature")[2:]) }, signature.ErrSignature},
	} {
		h := signed.Clone()
		c.change(h)
		assert.ErrorIs(t, signature.CheckHeaders(h, knownTime, signature.Tolerance), c.want, name)
	}
}

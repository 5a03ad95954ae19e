package webhook_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pawlhq/pawl/outbox/sink/webhook"
)

const (
	knownSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	knownID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	knownBody      = `{"test": 2432232314}`
	knownSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

var knownTime = time.Unix(1614265330, 0)

func parse(t testing.TB, text string) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The message is the one that the libraries of Standard Webhooks are tested
// with.
func TestSignatureIsThatOfStandardWebhooks(t *testing.T) {
	h := make(http.Header)
	secrets := []webhook.Secret{parse(t, knownSecret)}
	webhook.Sign(secrets, h, knownID, knownTime, []byte(knownBody))
	if got := h.Get("webhook-signature"); got != knownSignature {
		t.Errorf("signature %q, want %q", got, knownSignature)
	}
	if got := h.Get("webhook-timestamp"); got != "1614265330" {
		t.Errorf("timestamp %q", got)
	}
	id, err := webhook.Verify(secrets, h, []byte(knownBody), knownTime, webhook.Tolerance)
	if id != knownID || err != nil {
		t.Errorf("verified as %q, %v", id, err)
	}
}

func TestWhileASecretIsReplacedEitherVerifies(t *testing.T) {
	older, newer := webhook.NewSecret(), webhook.NewSecret()
	h := make(http.Header)
	webhook.Sign([]webhook.Secret{newer, older}, h, "m-1", knownTime, []byte(knownBody))
	for name, known := range map[string][]webhook.Secret{
		"only the older": {older}, "only the newer": {newer}, "both": {older, newer},
		"another first": {webhook.NewSecret(), newer},
	} {
		if _, err := webhook.Verify(known, h, []byte(knownBody), knownTime, webhook.Tolerance); err != nil {
			t.Errorf("a receiver that knows %s: %v", name, err)
		}
	}
	if _, err := webhook.Verify([]webhook.Secret{webhook.NewSecret()}, h, []byte(knownBody), knownTime, webhook.Tolerance); !errors.Is(err, webhook.ErrSignature) {
		t.Errorf("a receiver that knows neither: %v", err)
	}
}

func TestForgedAndStaleMessagesAreRefused(t *testing.T) {
	secrets := []webhook.Secret{parse(t, knownSecret)}
	tests := []struct {
		name                     string
		id, timestamp, signature string
		body                     string
		now                      time.Duration // after the timestamp
		want                     error
	}{
		{"as it was signed", knownID, "1614265330", knownSignature, knownBody, 0, nil},
		{"just in time", knownID, "1614265330", knownSignature, knownBody, webhook.Tolerance, nil},
		{"a clock that is behind", knownID, "1614265330", knownSignature, knownBody, -webhook.Tolerance, nil},
		{"too old", knownID, "1614265330", knownSignature, knownBody, webhook.Tolerance + time.Second, webhook.ErrTimestamp},
		{"too new", knownID, "1614265330", knownSignature, knownBody, -webhook.Tolerance - time.Second, webhook.ErrTimestamp},
		{"other body", knownID, "1614265330", knownSignature, knownBody + " ", 0, webhook.ErrSignature},
		{"other id", knownID + "x", "1614265330", knownSignature, knownBody, 0, webhook.ErrSignature},
		{"other timestamp", knownID, "1614265331", knownSignature, knownBody, 0, webhook.ErrSignature},
		{"among other signatures", knownID, "1614265330", "v1a,xyz v2,abc v1, " + knownSignature + " v1,AA==", knownBody, 0, nil},
		{"other scheme", knownID, "1614265330", strings.Replace(knownSignature, "v1,", "v2,", 1), knownBody, 0, webhook.ErrSignature},
		{"cut signature", knownID, "1614265330", knownSignature[:20], knownBody, 0, webhook.ErrSignature},
		{"no signature", knownID, "1614265330", "", knownBody, 0, webhook.ErrHeaders},
		{"no id", "", "1614265330", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"dotted id", knownID + ".1", "1614265330", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"no timestamp", knownID, "", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"signed timestamp", knownID, "+1614265330", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"padded timestamp", knownID, "01614265330", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"negative timestamp", knownID, "-1614265330", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"huge timestamp", knownID, "9223372036854775807", knownSignature, knownBody, 0, webhook.ErrHeaders},
		{"distant timestamp", knownID, "99999999999", knownSignature, knownBody, 0, webhook.ErrTimestamp},
	}
	for _, tt := range tests {
		h := make(http.Header)
		h.Set(webhook.HeaderID, tt.id)
		h.Set(webhook.HeaderTimestamp, tt.timestamp)
		h.Set(webhook.HeaderSignature, tt.signature)
		id, err := webhook.Verify(secrets, h, []byte(tt.body), knownTime.Add(tt.now), webhook.Tolerance)
		if !errors.Is(err, tt.want) || (err == nil) != (id == knownID) {
			t.Errorf("%s: %q, %v, want %v", tt.name, id, err, tt.want)
		}
	}
}

func TestZeroSecretVerifiesNothing(t *testing.T) {
	h := make(http.Header)
	webhook.Sign([]webhook.Secret{webhook.NewSecret()}, h, "m-1", knownTime, nil)
	for _, secrets := range [][]webhook.Secret{nil, {{}}} {
		if _, err := webhook.Verify(secrets, h, nil, knownTime, webhook.Tolerance); !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("with %d secrets: %v", len(secrets), err)
		}
	}
}

func TestSecretsAreParsedAndHidden(t *testing.T) {
	s := webhook.NewSecret()
	if parse(t, s.Reveal()).Reveal() != s.Reveal() {
		t.Error("a secret is not what it was revealed as")
	}
	key := strings.TrimPrefix(s.Reveal(), "whsec_")
	raw, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	c := webhook.Config{URL: "https://example.org", Secrets: []webhook.Secret{s}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		for _, value := range []any{s, &s, c, open(t, c)} {
			shown := fmt.Sprintf(format, value)
			for _, secret := range []string{key, fmt.Sprint(raw), fmt.Sprintf("%x", raw), fmt.Sprintf("%#v", raw)} {
				if strings.Contains(shown, strings.Trim(secret, "[]")) {
					t.Errorf("printed with %s as %s", format, shown)
				}
			}
		}
	}
	for _, text := range []string{"", "whsec_", key, "whsec_" + key + "!", "whsec_AAAA", "whsec_" + strings.Repeat("AAAA", 22), "whsk_" + key} {
		if _, err := webhook.ParseSecret(text); err == nil {
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
	secrets := []webhook.Secret{parse(f, knownSecret)}
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		h := make(http.Header)
		h.Set(webhook.HeaderID, id)
		h.Set(webhook.HeaderTimestamp, timestamp)
		h.Set(webhook.HeaderSignature, signature)
		// Whoever does not have the secret has only one message.
		if _, err := webhook.Verify(secrets, h, body, knownTime, webhook.Tolerance); err == nil &&
			(id != knownID || timestamp != "1614265330" || string(body) != knownBody) {
			t.Errorf("forged: %q %q %q", id, timestamp, body)
		}
		webhook.Sign(secrets, h, id, knownTime, body)
		got, err := webhook.Verify(secrets, h, body, knownTime, webhook.Tolerance)
		if plain := id != "" && !strings.Contains(id, "."); plain != (err == nil) || plain && got != id {
			t.Errorf("what was signed as %q is verified as %q, %v", id, got, err)
		}
		if _, err := webhook.Verify(secrets, h, append(bytes.Clone(body), '!'), knownTime, webhook.Tolerance); err == nil {
			t.Error("another body is verified")
		}
	})
}

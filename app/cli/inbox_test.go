package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inbox/signature"
)

func TestSecretsOfTheInboxAreInTheEnvironment(t *testing.T) {
	one, two := signature.NewSecret(), signature.NewSecret()
	t.Setenv("PAWL_INBOX_A_B_1_SECRET", " "+one.Reveal()+"\n"+two.Reveal())
	t.Setenv("PAWL_INBOX_SHOWN_SECRET", one.Reveal()+" whsec_sesame")
	got, err := inboxOf([]string{"a-b.1=acme"})
	if c := got["a-b.1"]; err != nil || c.Tenant != "acme" || len(c.Secrets) != 2 || c.Secrets[1].Reveal() != two.Reveal() {
		t.Errorf("got %v, %v", got, err)
	}
	for flags, want := range map[string]string{
		"":              `--inbox "" is neither CONSUMER nor CONSUMER=TENANT`,
		"=acme":         `--inbox "=acme" is neither`,
		"a-b.1=":        `--inbox "a-b.1=" is neither`,
		"none":          `--inbox "none": PAWL_INBOX_NONE_SECRET: the secret is missing`,
		"shown":         `--inbox "shown": PAWL_INBOX_SHOWN_SECRET: secret 2: webhook secret`,
		"a-b.1 a-b.1":   `--inbox names "a-b.1" twice`,
		"a-b.1 A_B_1=x": `--inbox "a-b.1" and "A_B_1" would have their secrets in one variable, PAWL_INBOX_A_B_1_SECRET`,
	} {
		list := strings.Split(flags, " ")
		_, err := inboxOf(list)
		if _, ok := errors.AsType[*usage.Error](err); !ok || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q: %v, want %s", flags, err, want)
		}
	}
}

func TestInboxKeepNamesConsumerAndTime(t *testing.T) {
	consumers := map[string]service.InboxConsumer{"bank": {}, "post": {}}
	err := keptFor(consumers, []string{"bank=720h"})
	assert.Truef(t, err == nil && consumers["bank"].Keep == 720*time.Hour && consumers["post"].Keep == 0, "%+v, %v", consumers, err)
	for flags, want := range map[string]string{
		"post": "is not CONSUMER=DURATION", "post=": "is not", "post=30": "is not", "post=0s": "is not", "post=-1h": "is not",
		"post=99999999h": "is not", "post=90000h": "longer than 3660 days", "other=1h": "--inbox other is not given",
		"post=1h post=2h": `names "post" twice`,
	} {
		consumers := map[string]service.InboxConsumer{"post": {}}
		err := keptFor(consumers, strings.Split(flags, " "))
		_, ok := errors.AsType[*usage.Error](err)
		assert.Truef(t, ok && strings.Contains(err.Error(), want), "%q: %v, want %s", flags, err, want)
	}
}

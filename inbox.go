package pawl

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/cli"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// InboxConsumer takes webhooks that are signed as Standard Webhooks says.
type InboxConsumer struct {
	// Tenant is whose the messages are. Default "default".
	Tenant string
	// Secrets are those that the sender may sign with: one, or two while one is being
	// replaced.
	Secrets []signature.Secret
}

// consumers are the inbox as the HTTP interface has it.
func (c Config) consumers() map[string]api.Consumer {
	list := make(map[string]api.Consumer, len(c.Inbox))
	for name, consumer := range c.Inbox {
		secrets := slices.Clone(consumer.Secrets)
		list[name] = api.Consumer{Tenant: consumer.Tenant, Verify: func(h http.Header, body []byte) (string, error) {
			return signature.Verify(secrets, h, body, time.Now(), signature.Tolerance)
		}}
	}
	return list
}

// checkInbox refuses consumers that could never take a message.
func (c Config) checkInbox(workflows []*workflow.Workflow) error {
	received := map[string]bool{}
	for _, w := range workflows {
		for _, s := range w.Steps {
			for _, r := range s.Receives {
				received[r.Consumer] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Inbox)) {
		consumer := c.Inbox[name]
		m := transitions.Message{Tenant: consumer.Tenant, Consumer: name, ID: "any"}
		switch err := m.Check(); {
		case err != nil:
			return cli.Usagef("inbox %q: %w", name, err)
		case len(consumer.Secrets) == 0 || slices.ContainsFunc(consumer.Secrets, signature.Secret.IsZero):
			return cli.Usagef("inbox %q has no secret: anybody could send it messages", name)
		case !received[name]:
			return cli.Usagef("inbox %q: no transition of any workflow receives from it", name)
		}
	}
	return nil
}

// inboxOf reads the flags --inbox, each "consumer" or "consumer=tenant", and the
// secrets from the environment.
func inboxOf(flags []string) (map[string]InboxConsumer, error) {
	consumers, variables := map[string]InboxConsumer{}, map[string]string{}
	for _, flag := range flags {
		name, tenant, given := strings.Cut(flag, "=")
		variable := secretVariable("INBOX", name)
		switch other, taken := variables[variable]; {
		case name == "" || given && tenant == "":
			return nil, cli.Usagef("--inbox %q is neither CONSUMER nor CONSUMER=TENANT", flag)
		case taken && other == name:
			return nil, cli.Usagef("--inbox names %q twice", name)
		case taken:
			return nil, cli.Usagef("--inbox %q and %q would have their secrets in one variable, %s", other, name, variable)
		}
		variables[variable] = name
		secrets, err := secretsOf(os.Getenv(variable))
		if err != nil {
			return nil, cli.Usagef("--inbox %q: %s: %w", name, variable, err)
		}
		consumers[name] = InboxConsumer{Tenant: tenant, Secrets: secrets}
	}
	return consumers, nil
}

// secretVariable is the environment variable with the secrets of a consumer or a
// sink, as kind says: what is neither a letter nor a digit in its name is "_".
func secretVariable(kind, name string) string {
	return "PAWL_" + kind + "_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		default:
			return '_'
		}
	}, name) + "_SECRET"
}

// secretsOf reads secrets that are separated by spaces.
func secretsOf(text string) ([]signature.Secret, error) {
	var secrets []signature.Secret
	for i, field := range strings.Fields(text) {
		s, err := signature.ParseSecret(field)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		secrets = append(secrets, s)
	}
	if len(secrets) == 0 {
		return nil, errors.New("the secret is missing")
	}
	return secrets, nil
}

package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/transitions"
)

// keptFor reads the flags --inbox-keep, each "consumer=duration".
func keptFor(consumers map[string]service.InboxConsumer, flags []string) error {
	for _, flag := range flags {
		name, text, _ := strings.Cut(flag, "=")
		c, known := consumers[name]
		keep, err := time.ParseDuration(text)
		switch {
		case err != nil || keep <= 0:
			return usage.Errorf("--inbox-keep %q is not CONSUMER=DURATION, such as payments=720h", flag)
		case keep > transitions.MaxKeep:
			return usage.Errorf("--inbox-keep %q is longer than %d days", flag, transitions.MaxKeep/(24*time.Hour))
		case !known:
			return usage.Errorf("--inbox-keep names %q, and there is no --inbox %s", name, name)
		case c.Keep != 0:
			return usage.Errorf("--inbox-keep names %q twice", name)
		}
		c.Keep = keep
		consumers[name] = c
	}
	return nil
}

// inboxOf reads the flags --inbox, each "consumer" or "consumer=tenant", and the
// secrets from the environment.
func inboxOf(flags []string) (map[string]service.InboxConsumer, error) {
	consumers, variables := map[string]service.InboxConsumer{}, map[string]string{}
	for _, flag := range flags {
		name, tenant, given := strings.Cut(flag, "=")
		variable := secretVariable("INBOX", name)
		switch other, taken := variables[variable]; {
		case name == "" || given && tenant == "":
			return nil, usage.Errorf("--inbox %q is neither CONSUMER nor CONSUMER=TENANT", flag)
		case taken && other == name:
			return nil, usage.Errorf("--inbox names %q twice", name)
		case taken:
			return nil, usage.Errorf("--inbox %q and %q would have their secrets in one variable, %s", other, name, variable)
		}
		variables[variable] = name
		secrets, err := secretsOf(os.Getenv(variable))
		if err != nil {
			return nil, usage.Errorf("--inbox %q: %s: %w", name, variable, err)
		}
		consumers[name] = service.InboxConsumer{Tenant: tenant, Secrets: secrets}
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

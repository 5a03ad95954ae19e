package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/transitions"
)

// sinks returns the sinks of the flags: receivers as NAME=URL, and private networks that webhooks may call. stdout is for file:-. Errors
// do not contain the URL, which may have a password or a token.
func sinks(receivers, private []string, getenv func(string) string, stdout io.Writer, log *slog.Logger) ([]relay.Sink, error) {
	networks, err := networksOf("--sink-private", private)
	if err != nil {
		return nil, err
	}
	var list []relay.Sink
	variables := map[string]string{}
	for _, text := range receivers {
		name, address, found := strings.Cut(text, "=")
		if !found {
			return nil, usage.Errorf("a --sink is not NAME=URL")
		}
		if err := relay.CheckName(name); err != nil {
			return nil, usage.Errorf("--sink: %w", err)
		}
		if slices.ContainsFunc(list, func(s relay.Sink) bool { return s.Name == name }) {
			return nil, usage.Errorf("--sink %s is given twice", name)
		}
		s, err := sinkAt(name, address, networks, getenv, stdout, log)
		if err != nil {
			return nil, usage.Errorf("--sink %s: %w", name, err)
		}
		if _, signs := s.To.(*webhook.Sink); signs {
			variable := secretVariable(sinkSecrets, name)
			if other, taken := variables[variable]; taken {
				return nil, usage.Errorf("--sink %s and %s would have their secrets in one variable, %s", other, name, variable)
			}
			variables[variable] = name
		}
		list = append(list, s)
	}
	return list, nil
}

// beginNow makes new sinks with these names start with the next event.
func beginNow(list []relay.Sink, names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(list, func(s relay.Sink) bool { return s.Name == name })
		if i < 0 {
			return usage.Errorf("--sink-from-now %s names no --sink", name)
		}
		list[i].FromNow = true
	}
	return nil
}

// sinkSecrets is the kind of [secretVariable] for webhooks.
const sinkSecrets = "SINK"

// sinkAt returns the sink of a URL with its batch size and concurrency.
func sinkAt(
	name, address string,
	private []netip.Prefix,
	getenv func(string) string,
	stdout io.Writer,
	log *slog.Logger,
) (relay.Sink, error) {
	s := relay.Sink{Name: name}
	u, err := url.Parse(address)
	if err != nil {
		return s, errors.New("the URL cannot be parsed")
	}
	switch u.Scheme {
	case "http", "https":
		// A call sends its events one by one, each within 20 s: use many small calls.
		s.Batch, s.Calls = 4, 32
		variable := secretVariable(sinkSecrets, name)
		secrets, wrong := secretsOf(getenv(variable))
		if wrong != nil {
			return s, fmt.Errorf("%s: %w", variable, wrong)
		}
		s.To, err = webhookAt(u, secrets, private)
	case "nats", "tls":
		s.To, err = jetstreamAt(u, log)
	case "file":
		s.Calls = 1 // they would wait for each other
		s.To, err = fileAt(u, stdout)
	default:
		err = errors.New("the URL is not one of https, http, nats, tls or file")
	}
	return s, err
}

func fileAt(u *url.URL, stdout io.Writer) (*file.Sink, error) {
	switch {
	case u.RawQuery != "" || u.Fragment != "" || u.Host != "":
		return nil, errors.New("a file's URL is file:///path, or file:- for the standard output")
	case u.Opaque == "-":
		return file.NewWriter(stdout), nil
	case u.Opaque != "" || !filepath.IsAbs(u.Path):
		return nil, errors.New("the file's path is not absolute")
	}
	return file.New(file.Config{Path: u.Path})
}

// webhookAt returns a webhook. An address in the URL may be private; addresses of a host name are checked on each call.
func webhookAt(u *url.URL, secrets []signature.Secret, private []netip.Prefix) (*webhook.Sink, error) {
	c := webhook.Config{URL: u.String(), Secrets: secrets, PlainHTTP: u.Scheme == "http", Private: private}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		addr = addr.Unmap()
		c.Private = append(slices.Clone(private), netip.PrefixFrom(addr, addr.BitLen()))
	} else if u.Hostname() == "localhost" {
		c.Private = append(slices.Clone(private), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	return webhook.New(c)
}

func jetstreamAt(u *url.URL, log *slog.Logger) (*jetstream.Sink, error) {
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("the URL's query cannot be parsed")
	}
	c := jetstream.Config{Stream: q.Get("stream"), Subject: q.Get("subject"), Log: log}
	for name, values := range q {
		if name != "stream" && name != "subject" || len(values) > 1 {
			return nil, errors.New("the URL's query takes stream and subject, each once")
		}
	}
	if u.Path != "" && u.Path != "/" || u.Host == "" || u.Fragment != "" {
		return nil, errors.New("the URL is not nats://host:port/?stream=…&subject=…")
	}
	server := *u
	server.Path, server.RawQuery = "", ""
	c.URL = server.String()
	return jetstream.New(c)
}

// addNetwork adds the flags of the listener.
func addNetwork(c *cobra.Command, n *service.Network) {
	own := c.Flags()
	own.StringVar(&n.CertFile, "tls-cert", "",
		"file with the TLS certificate chain in PEM; reloaded when it changes")
	own.StringVar(&n.KeyFile, "tls-key", "", "file with the TLS key in PEM")
	own.BoolVar(&n.PlainHTTP, "plain-http", false,
		"serve without TLS on an address that other machines reach, behind a proxy that terminates TLS")
	own.StringVar(&n.PublicURL, "public-url", "",
		"URL of this service for clients of a proxy, such as https://example.com/pawl; its path prefixes all addresses")
	own.StringSliceVar(&n.Origins, "origin", nil,
		"allowed CORS origins, such as https://shop.example.com; none by default")
	own.DurationVar(&n.MaxWait, "max-wait", api.DefaultWait,
		"maximum time that a request waits (Prefer: wait); proxies need a longer timeout")
	own.IntVar(&n.Connections, "max-connections", 0,
		"maximum number of connections; idle ones are closed for new ones; defaults to 10,000, or fewer if the process has a memory limit")
	own.IntVar(&n.AddressConnections, "max-address-connections", 0,
		"maximum number of connections per remote address; defaults to half of --max-connections")
	own.IntVar(&n.TenantRequests, "max-tenant-requests", 0,
		"maximum number of open requests and streams per tenant on this node, except those of operators; half of it per credential; "+
			"0 means unlimited")
}

// networksOf parses the networks of a flag.
func networksOf(flag string, texts []string) (list []netip.Prefix, err error) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, usage.Errorf("%s %s is not a network such as 10.0.0.0/8", flag, text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

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
			return usage.Errorf("--inbox-keep names %q, but --inbox %s is not given", name, name)
		case c.Keep != 0:
			return usage.Errorf("--inbox-keep names %q twice", name)
		}
		c.Keep = keep
		consumers[name] = c
	}
	return nil
}

// inboxOf reads the flags --inbox, each "consumer" or "consumer=tenant", and the secrets from the environment.
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

// secretVariable returns the name of the environment variable with the secrets of a consumer or a sink.
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

package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/outbox/sink/jetstream"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
)

// sinks makes the sinks that the flags ask for: receivers as NAME=URL, and the
// networks that webhooks may call although they are not public. stdout is for
// file:-. No error shows a URL, which may hold a password or a token.
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

// beginNow lets the sinks with these names begin with what happens from now on, if
// they are new.
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

// sinkSecrets is the kind of the variables with the secrets of webhooks.
const sinkSecrets = "SINK"

// sinkAt makes the sink of a URL, and says how it is best served.
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
		// One event after the other in a call, each within 20 s: small calls, and many.
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

// webhookAt calls a URL. Where it names an address itself, that one may be
// called; where a name leads to is checked.
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

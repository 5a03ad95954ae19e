package flags

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
)

// The variables of a command that asks a server.
const (
	EnvToken = "PAWL_TOKEN" // the credential
	EnvURL   = "PAWL_URL"   // of the server, or of several nodes with commas between
)

// Servers adds the flags --server, of which value is the default, and --plain-http.
func Servers(c *cobra.Command, urls *[]string, plain *bool, value string) {
	PlainHTTP(c, plain)
	c.Flags().StringSliceVar(urls, "server", strings.Split(cmp.Or(os.Getenv(EnvURL), value), ","),
		"URL of the server, or of several nodes with commas between; default is "+EnvURL+", or else "+value)
	c.Flags().Lookup("server").DefValue = "[]" // said already
}

// PlainHTTP adds the flag --plain-http.
func PlainHTTP(c *cobra.Command, plain *bool) {
	c.Flags().BoolVar(plain, "plain-http", false, "send the credential in "+EnvToken+" without TLS to another machine, such as inside a cluster")
}

// CheckOpen refuses a server, the value of a flag, to which the credential of EnvToken would be sent without TLS. Error: *usage.Error.
func CheckOpen(flag, server string, plain bool) error {
	_, err := client.New(client.Config{URLs: []string{server}, Token: os.Getenv(EnvToken), PlainHTTP: plain})
	if errors.Is(err, client.ErrPlainHTTP) {
		return usage.Errorf("--%s %s is another machine, and the credential in %s would be sent to it without TLS: use https, or --plain-http",
			flag, server, EnvToken)
	}
	return nil
}

// answerTime is how long a server may take for an answer, in full.
const answerTime = 10 * time.Second

// Client asks the servers that flags name. It follows no redirection, which could lead past TLS.
var Client = &http.Client{Timeout: answerTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// Dial makes a client of the servers of the flag --server, with the credential of EnvToken if it is set. Error: a *usage.Error for an
// invalid URL.
func Dial(config client.Config) (*client.Client, error) {
	if len(config.URLs) == 0 {
		config.URLs = []string{""}
	}
	for _, server := range config.URLs {
		if _, err := serverAt("server", server); err != nil {
			return nil, err
		}
		if err := CheckOpen("server", server, config.PlainHTTP); err != nil {
			return nil, err
		}
	}
	config.Token, config.Timeout = os.Getenv(EnvToken), answerTime
	c, err := client.New(config)
	if err != nil {
		return nil, usage.Errorf("--server: %w", err)
	}
	return c, nil
}

// AskServer makes a request to the server whose URL is the value of a flag, with the credential of EnvToken if it is set; body is JSON and
// may be nil. Error: a *usage.Error for an invalid URL.
func AskServer(ctx context.Context, flag, server, method, path string, query url.Values, body io.Reader) (*http.Request, error) {
	address, err := serverAt(flag, server)
	if err != nil {
		return nil, err
	}
	address = address.JoinPath(path)
	address.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, address.String(), body)
	if err != nil {
		return nil, usage.Errorf("--%s: %w", flag, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token := os.Getenv(EnvToken); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r, nil
}

// serverAt reads the URL of a server. No error has the URL, in which a password may be.
func serverAt(flag, server string) (*url.URL, error) {
	address, err := url.Parse(server)
	switch {
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return nil, usage.Errorf("--%s is not the URL of a server, such as http://127.0.0.1:8080", flag)
	case address.User != nil:
		return nil, usage.Errorf("--%s has a user name or a password in it, which no server takes: give the credential in %s", flag, EnvToken)
	}
	return address, nil
}

// ByDatabase reports whether a command with the flag --server is to work on the database: where --database is given, or
// DATABASE_URL and nothing that is of a server, neither a URL nor a credential. Error: a *usage.Error for both flags.
func ByDatabase(c *cobra.Command) (bool, error) {
	server, database := c.Flag("server").Changed, c.Flag("database")
	switch {
	case server && database.Changed:
		return false, usage.Errorf("--server and --database: give one of them")
	case server || database.Changed:
		return database.Changed, nil
	}
	return database.Value.String() != "" && os.Getenv(EnvURL) == "" && os.Getenv(EnvToken) == "", nil
}

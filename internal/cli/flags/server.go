package flags

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/usage"
)

// The variables of a command that asks a server.
const (
	EnvToken = "PAWL_TOKEN" // the credential
	EnvURL   = "PAWL_URL"   // of the server, or of several nodes with commas between
)

// Servers is the flag --server of a command, whom it asks; value is its default.
func Servers(c *cobra.Command, urls *[]string, value string) {
	c.Flags().StringSliceVar(urls, "server", strings.Split(cmp.Or(os.Getenv(EnvURL), value), ","),
		"URL of the server, or of several nodes with commas between; default is "+EnvURL+", or else "+value)
	c.Flags().Lookup("server").DefValue = "[]" // said already
}

// answerTime is how long a server may take for an answer, in full.
const answerTime = 10 * time.Second

// Client asks the servers that flags name.
var Client = &http.Client{Timeout: answerTime}

// Dial makes a client of the servers of the flag --server, with the credential of EnvToken where there is one. Error: a
// *usage.Error for a URL that is none.
func Dial(config client.Config) (*client.Client, error) {
	if len(config.URLs) == 0 {
		config.URLs = []string{""}
	}
	for _, server := range config.URLs {
		if _, err := serverAt("server", server); err != nil {
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

// AskServer is a GET request to the server whose URL a flag has, with the credential of EnvToken where there is one. Error: a
// *usage.Error for a URL that is none.
func AskServer(ctx context.Context, flag, server, path string, query url.Values) (*http.Request, error) {
	address, err := serverAt(flag, server)
	if err != nil {
		return nil, err
	}
	address = address.JoinPath(path)
	address.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, usage.Errorf("--%s: %w", flag, err)
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

package flags

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/usage"
	"github.com/pawlhq/pawl/client"
)

// The environment variables of commands that call a server.
const (
	EnvToken = "PAWL_TOKEN" // the credential
	EnvURL   = "PAWL_URL"   // of the server, or of several nodes, separated by commas
)

// Servers adds the flags --server, of which value is the default, and --plain-http.
func Servers(c *cobra.Command, urls *[]string, plain *bool, value string) {
	plainHTTP(c, plain)
	c.Flags().StringSliceVar(urls, "server", strings.Split(cmp.Or(os.Getenv(EnvURL), value), ","),
		"URL of the server, or comma-separated URLs of nodes; defaults to "+EnvURL+", or "+value)
	c.Flags().Lookup("server").DefValue = "[]" // the usage has it
}

// Node adds the flag --node, which makes a command use a node instead of the database, and --plain-http.
func Node(c *cobra.Command) {
	node := c.Flags().String("node", "", "URL of a node to use instead of the database, such as http://127.0.0.1:8080")
	var plain bool
	plainHTTP(c, &plain)
	Before(c, func() error {
		if err := NotEmpty(c, "node"); err != nil || *node == "" {
			return err
		}
		return checkServer("node", *node, plain)
	})
}

func plainHTTP(c *cobra.Command, plain *bool) {
	c.Flags().BoolVar(plain, "plain-http", false, "send the credential in "+EnvToken+" without TLS to other machines")
}

// checkServer validates the URL in a flag, and that the credential of EnvToken is not sent to it without TLS. Errors: a *usage.Error,
// without a user name or password in the URL.
func checkServer(flag, server string, plain bool) error {
	address, err := url.Parse(server)
	switch {
	case err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return usage.Errorf("--%s is not the URL of a server, such as http://127.0.0.1:8080", flag)
	case address.User != nil:
		return usage.Errorf("--%s contains a user name or a password: set the credential in %s", flag, EnvToken)
	}
	_, err = client.New(client.Config{URLs: []string{server}, Token: os.Getenv(EnvToken), PlainHTTP: plain})
	if errors.Is(err, client.ErrPlainHTTP) {
		return usage.Errorf("--%s %s is another machine, and the credential in %s would be sent to it without TLS: use https, or --plain-http",
			flag, server, EnvToken)
	}
	return nil
}

// answerTime is the timeout of a request.
const answerTime = 10 * time.Second

// Dial returns a client of the servers of the flag --server, with the credential of EnvToken if it is set. Errors: a *usage.Error, without
// the URL, which may contain a password.
func Dial(config client.Config) (*client.Client, error) {
	if len(config.URLs) == 0 {
		config.URLs = []string{""}
	}
	for _, server := range config.URLs {
		if err := checkServer("server", server, config.PlainHTTP); err != nil {
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

// InProcess is the URL of the API in this process.
const InProcess = "http://localhost"

// Use configures the API on a database.
type Use struct {
	Commits    bool          // the program commits commands like a node
	Records    bool          // the program also records its workflows
	KeepEvents time.Duration // zero means the default
}

// Database calls do with a client of the API on a command's database, which answers in this process at any loopback host.
type Database func(c *cobra.Command, u Use, do func(context.Context, *http.Client) error) error

// ByDatabase reports whether a command with the flag --server uses the database: if --database is given, or if DATABASE_URL is set and
// neither a URL nor a credential of a server is. It returns a *usage.Error for both flags.
func ByDatabase(c *cobra.Command) (bool, error) {
	server, database := c.Flag("server").Changed, c.Flag("database")
	switch {
	case server && database.Changed:
		return false, usage.Errorf("--server and --database exclude each other")
	case server || database.Changed:
		return database.Changed, nil
	}
	return database.Value.String() != "" && os.Getenv(EnvURL) == "" && os.Getenv(EnvToken) == "", nil
}

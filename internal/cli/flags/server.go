package flags

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/pawlhq/pawl/client"
	"github.com/pawlhq/pawl/internal/usage"
)

// EnvToken names the variable that has the credential of a command that asks a server.
const EnvToken = "PAWL_TOKEN"

// answerTime is how long a server may take for an answer, in full.
const answerTime = 10 * time.Second

// Client asks the servers that flags name.
var Client = &http.Client{Timeout: answerTime}

// Dial makes a client of the servers whose URLs a flag has, with the credential of EnvToken where there is one. Error: a
// *usage.Error for a URL that is none.
func Dial(flag string, config client.Config) (*client.Client, error) {
	for _, server := range config.URLs {
		if _, err := serverAt(flag, server); err != nil {
			return nil, err
		}
	}
	config.Token, config.Timeout = os.Getenv(EnvToken), answerTime
	c, err := client.New(config)
	if err != nil {
		return nil, usage.Errorf("--%s: %w", flag, err)
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

// serverAt reads the URL of a server.
func serverAt(flag, server string) (*url.URL, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, usage.Errorf("--%s is not the URL of a server, such as http://127.0.0.1:8080", flag)
	}
	return address, nil
}

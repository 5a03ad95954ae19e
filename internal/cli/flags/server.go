package flags

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/pawlhq/pawl/internal/usage"
)

// EnvToken names the variable that has the credential of a command that asks a server.
const EnvToken = "PAWL_TOKEN"

// Client asks the servers that flags name. An answer has to be there, in full, within ten seconds.
var Client = &http.Client{Timeout: 10 * time.Second}

// AskServer is a GET request to the server whose URL a flag has, with the credential of EnvToken where there is one. Error: a
// *usage.Error for a URL that is none.
func AskServer(ctx context.Context, flag, server, path string, query url.Values) (*http.Request, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, usage.Errorf("--%s is not the URL of a server, such as http://127.0.0.1:8080", flag)
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

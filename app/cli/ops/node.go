package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/pawlhq/pawl/app/cli/flags"
)

// nodeFlag adds the flag --node, which makes a command call a node instead of the database, and --plain-http.
func nodeFlag(c *cobra.Command, node *string) {
	c.Flags().StringVar(node, "node", "", "address of a node to ask, such as http://127.0.0.1:8080, instead of the database")
	var plain bool
	flags.PlainHTTP(c, &plain)
	flags.Before(c, func() error {
		if err := flags.NotEmpty(c, "node"); err != nil || *node == "" {
			return err
		}
		return flags.CheckOpen("node", *node, plain)
	})
}

// askNode calls a node, and decodes the answer into v, unless it is empty.
func askNode(r *http.Request, v any) (err error) {
	answer, err := flags.Client.Do(r)
	if err != nil {
		return fmt.Errorf("ask the node: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	switch answer.StatusCode {
	case http.StatusNoContent:
		return nil
	case http.StatusOK:
		if err := json.NewDecoder(answer.Body).Decode(v); err != nil {
			return fmt.Errorf("the answer of the node: %w", err)
		}
		return nil
	}
	var problem struct{ Detail string }
	_ = json.NewDecoder(answer.Body).Decode(&problem) // the status says enough
	return fmt.Errorf("the node answered %s: %s", answer.Status, problem.Detail)
}

// askNodeFor asks a node for what it has at a path.
func askNodeFor[T any](ctx context.Context, node, path string) (found T, err error) {
	r, err := flags.AskServer(ctx, "node", node, http.MethodGet, path, nil, nil)
	if err == nil {
		err = askNode(r, &found)
	}
	return found, err
}

package stream

import (
	"bytes"
	"context"
	"testing"

	"github.com/pawlhq/pawl/workflow"
)

func TestAnOperationThatTheClientMayNotDoIsRefused(t *testing.T) {
	for _, message := range []string{
		`{"op":"subscribe","id":"a","after":0}`, `{"op":"watch","id":"a","scope":"s","key":"k"}`, `{"op":"unsubscribe","id":"a"}`,
		`{"op":"authenticate","id":"a","credential":"c"}`,
	} {
		asked := ""
		c := &conn{
			server: &Server{judge: func(_ context.Context, err error) error { return err }},
			out:    make(chan outgoing, 1),
			peer: Peer{May: func(_ context.Context, ask Ask) error {
				asked = ask.Operation
				return workflow.Errorf(workflow.Forbidden, "not you")
			}},
		}
		c.handle(t.Context(), []byte(message))
		got := <-c.out
		if !bytes.Contains(got.frame, []byte(`"id":"a","code":"forbidden"`)) || !bytes.Contains([]byte(message), []byte(`"op":"`+asked+`"`)) {
			t.Errorf("%s: asked for %q, answered %s", message, asked, got.frame)
		}
	}
}

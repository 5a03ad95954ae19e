package replay_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/api"
	"github.com/pawlhq/pawl/examples/fines/replay"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

func serve(t testing.TB, h http.Handler) replay.Target {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return replay.HTTP(server.URL+"/", server.Client())
}

// Over HTTP every command is answered as the engine itself answers it.
func TestHTTPAnswersAsTheEngineDoes(t *testing.T) {
	t.Parallel()
	e, _ := start(t)
	handler, err := api.New(e, api.Config{})
	require.NoError(t, err)
	target := serve(t, handler)
	dated := func(key, transition, on string) transitions.Command {
		return transitions.Command{Tenant: "t", Workflow: "fine", Transition: transition, BusinessKey: "A1", Key: key,
			Payload: []byte(`{"on":"` + on + `"}`)}
	}
	create := transitions.Command{Tenant: "t", Workflow: "fine", Transition: "create_fine", Key: "1",
		Payload: []byte(`{"case":"A1","on":"2010-01-10","amount_cents":3500,"article":157,"vehicle_class":"A","officer":1}`)}
	other := create
	other.Payload = []byte(strings.Replace(string(create.Payload), "3500", "3600", 1))
	cs := []transitions.Command{
		create,
		create, // a replay
		other,  // the key was used
		dated("2", "send_for_credit_collection", "2010-01-11"), // illegal
		dated("3", "insert_date_appeal_to_prefecture", "yesterday"),
		dated("4", "insert_date_appeal_to_prefecture", "2010-01-09"), // refused by a rule
		dated("5", "fly", "2010-01-13"),
	}
	got := target.SubmitMany(t.Context(), cs)
	want := e.SubmitMany(t.Context(), cs) // replays, where something is stored
	for i := range cs {
		g, w := got[i], want[i]
		assert.Truef(t, (i != 0 || !g.Receipt.Replayed) && (i != 1 || g.Receipt.Replayed), "%d: replayed %v", i, g.Receipt.Replayed)
		if workflow.CodeOf(g.Err) != workflow.CodeOf(w.Err) || g.Receipt.Status != w.Receipt.Status ||
			string(g.Receipt.Body) != string(w.Receipt.Body) || g.Receipt.Version != w.Receipt.Version || g.Receipt.Position != w.Receipt.Position {
			t.Errorf("%d %s:\n got %+v %s %v\nwant %+v %s %v", i, cs[i].Transition, g.Receipt, g.Receipt.Body, g.Err, w.Receipt, w.Receipt.Body,
				w.Err)
		}
		assert.Falsef(t, !g.Receipt.Refused() && g.Receipt.Instance != w.Receipt.Instance, "%d: instance %s", i, g.Receipt.Instance)
	}
	assert.Truef(t, got[0].Receipt.Instance != uuid.Nil && got[3].Receipt.Status == 409,
		"the commands did not do what they are here for: %+v", got)
}

// Answers that do not come from a Pawl server are classified: temporary failures, and a wrong address.
func TestHTTPTellsOutagesFromMistakes(t *testing.T) {
	t.Parallel()
	one := []transitions.Command{{Workflow: "fine", Transition: "payment", BusinessKey: "A1", Key: "1"}}
	for name, tt := range map[string]struct {
		status int
		body   string
		want   workflow.Code
	}{
		"a proxy without a server":  {502, "<html>", workflow.Unavailable},
		"a node that stops":         {503, `{"code":"shutting_down","status":503,"detail":"stopping"}`, workflow.ShuttingDown},
		"somebody else's server":    {404, "not here", workflow.Unavailable},
		"a caller without a right":  {403, `{"code":"forbidden","status":403,"detail":"no"}`, workflow.Forbidden},
		"an answer that is cut off": {200, `[{"status":`, workflow.Unavailable},
		"too few answers":           {200, `[]`, workflow.Unavailable},
		"a defect": {200, `[{"status":500,"replayed":false,` +
			`"body":{"code":"internal_error","status":500,"detail":"x"}}]`, workflow.Internal},
	} {
		target := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		err := target.SubmitMany(t.Context(), one)[0].Err
		assert.Equalf(t, tt.want, workflow.CodeOf(err), "%s: got %v", name, err)
	}
	err := replay.HTTP("http://127.0.0.1:1", nil).SubmitMany(t.Context(), one)[0].Err
	assert.Equalf(t, workflow.Unavailable, workflow.CodeOf(err), "nobody there: %v", err)
}

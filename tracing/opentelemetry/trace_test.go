package opentelemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlhq/pawl/app/service"
	"github.com/pawlhq/pawl/inbox/signature"
	"github.com/pawlhq/pawl/internal/testkit/await"
	"github.com/pawlhq/pawl/internal/testkit/docs"
	"github.com/pawlhq/pawl/internal/testkit/pgtest"
	"github.com/pawlhq/pawl/outbox/relay"
	"github.com/pawlhq/pawl/outbox/sink/webhook"
	"github.com/pawlhq/pawl/tracing/opentelemetry"
	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// The trace of an order: a shop has it paid over HTTP; the activity calls a payment provider; the event is delivered to a warehouse by
// webhook; and the warehouse's signed answer arrives in the inbox and ships the order. The others use OpenTelemetry's own propagator for
// W3C Trace Context, so the implementation is not tested against itself.

type parcel struct {
	Number string `json:"number"`
	Paid   bool   `json:"paid"`
}

type packed struct {
	Order string `json:"order"`
}

// traced is who takes part, each with a tracer, and what all of them have ended.
type traced struct {
	t          *testing.T
	spans      *tracetest.InMemoryExporter
	provider   *sdktrace.TracerProvider
	secret     signature.Secret
	inbox      string // where the warehouse answers
	deliveries chan map[string]any
}

func newTraced(t *testing.T) *traced {
	x := &traced{t: t, spans: tracetest.NewInMemoryExporter(), secret: signature.NewSecret(), deliveries: make(chan map[string]any, 10)}
	x.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(x.spans))
	return x
}

// asked serves a request in the trace that it names.
func (x *traced) asked(who string, do func(ctx context.Context, body []byte)) string {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := x.provider.Tracer(who).Start(ctx, r.Method+" "+r.URL.Path, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			x.t.Error(err)
		}
		do(ctx, body)
	}))
	x.t.Cleanup(server.Close)
	return server.URL
}

// ask posts in a trace, and returns the answer.
func (x *traced) ask(ctx context.Context, who, name, url string, body []byte, change func(http.Header)) (status int, answer string) {
	ctx, span := x.provider.Tracer(who).Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		x.t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	change(r.Header)
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		x.t.Errorf("%s: %d %s, %v", url, response.StatusCode, text, err)
	}
	return response.StatusCode, string(text)
}

// warehouse packs what it hears of, and says so.
func (x *traced) warehouse(ctx context.Context, body []byte) {
	var event map[string]any
	if err := json.Unmarshal(body, &event); err != nil {
		x.t.Error(err)
		return
	}
	x.deliveries <- event
	message, err := json.Marshal(packed{Order: fmt.Sprint(event["businesskey"])})
	if err != nil {
		x.t.Error(err)
	}
	x.ask(ctx, "warehouse", "POST", x.inbox, message, func(h http.Header) {
		signature.Sign([]signature.Secret{x.secret}, h, "packed-1", time.Now(), message)
	})
}

// order is the workflow. Its activity asks the provider.
func (x *traced) order(provider string) workflow.Source {
	return workflow.Define("order", 1,
		workflow.Start("place", "placed", func(_ *workflow.Call, d *parcel, p packed) error {
			d.Number = p.Order
			return nil
		}).BusinessKey(func(p packed) string { return p.Order }),
		workflow.Do("pay", workflow.From("placed"), "paying", "paid",
			func(ctx context.Context, a *workflow.Attempt, _ parcel, _ workflow.None) (workflow.None, error) {
				x.ask(ctx, "activity", "POST", provider+"/charges", nil, func(h http.Header) { h.Set("Idempotency-Key", a.Key) })
				return workflow.None{}, nil
			},
			func(_ *workflow.Call, d *parcel, _ workflow.None) error {
				d.Paid = true
				return nil
			}).OrElse("unpaid", func(*workflow.Call, *parcel, workflow.Failure) error { return nil }),
		workflow.On("ship", workflow.From("paid"), "shipped", func(*workflow.Call, *parcel, packed) error { return nil }).
			Receive("warehouse", workflow.JSON(func(_ workflow.Message, p packed) (workflow.Address, packed, error) {
				return workflow.Address{BusinessKey: p.Order}, p, nil
			})),
	).Final("shipped", "unpaid")
}

// start starts Pawl between the others.
func (x *traced) start() *service.Service {
	receiver := x.asked("warehouse", x.warehouse) + "/events"
	to, err := webhook.New(webhook.Config{URL: receiver, Secrets: []signature.Secret{x.secret}, PlainHTTP: true,
		Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}})
	if err != nil {
		x.t.Fatal(err)
	}
	provider := x.asked("provider", func(context.Context, []byte) {})
	s, err := service.Start(x.t.Context(), service.Config{Workflows: []workflow.Source{x.order(provider)},
		Database: pgtest.URL(x.t), Address: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
		Tracer: opentelemetry.Tracer(x.provider), Inbox: map[string]service.InboxConsumer{"warehouse": {Secrets: []signature.Secret{x.secret}}},
		Sinks: []relay.Sink{{Name: "warehouse", To: to, Filter: transitions.EventFilter{Types: []string{"order.pay"}}}}})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			x.t.Error(err)
		}
	})
	x.inbox = s.URL() + "/v1/inbox/warehouse"
	return s
}

// buy has the order paid, as a trace that begins there.
func (x *traced) buy(s *service.Service) (status int, answer string) {
	return x.ask(context.Background(), "shop", "POST", s.URL()+"/v1/workflows/order/keys/A-17/pay", []byte("{}"),
		func(h http.Header) { h.Set("Idempotency-Key", "pay-1") })
}

// place places the order in a trace that is not sampled.
func (x *traced) place(s *service.Service) {
	ctx := trace.ContextWithRemoteSpanContext(x.t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	_, err := s.Engine().Submit(ctx, transitions.Command{Workflow: "order", Transition: "place", Key: "place-1",
		Payload: []byte(`{"order":"A-17"}`)})
	if err != nil {
		x.t.Fatal(err)
	}
}

func TestOrderTrace_Golden(t *testing.T) {
	t.Parallel()
	x := newTraced(t)
	s := x.start()
	x.place(s)
	x.buy(s)
	ended := func(name string) func(tracetest.SpanStub) bool {
		return func(s tracetest.SpanStub) bool { return s.Name == name }
	}
	await.Eventually(t, "the delivery has ended, and three transactions", func() bool {
		all := x.spans.GetSpans()
		commits := 0
		for _, s := range all {
			if s.Name == "COMMIT" {
				commits++
			}
		}
		return slices.ContainsFunc(all, ended("send warehouse")) && slices.ContainsFunc(all, ended("attempt order.pay")) && commits == 3
	})
	inst, err := s.Engine().Read().Instance(t.Context(), "", transitions.InstanceID("default", "order", "A-17"))
	require.Truef(t, err == nil && inst.State == "shipped", "%+v, %v", inst, err)
	all := x.spans.GetSpans()
	tree := newTree(t, all)
	tree.checkCommits()
	attempt := all[slices.IndexFunc(all, ended("attempt order.pay"))].SpanContext
	want := fmt.Sprintf("00-%s-%s-01", attempt.TraceID(), attempt.SpanID())
	event := <-x.deliveries
	assert.Truef(t, event["traceparent"] == want, "the event was made in %v, and its traceparent is %v", want, event["traceparent"])
	docs.Part(t, "../../docs/tracing.md", "trace", "```mermaid\n"+tree.mermaid()+"```\n")
}

// tree is a trace, and the transactions that are linked to it.
type tree struct {
	t        *testing.T
	root     *tracetest.SpanStub
	children map[trace.SpanID][]*tracetest.SpanStub
	commits  []*tracetest.SpanStub
	place    map[trace.SpanID]int // of the spans of the trace, as they are drawn
	drawn    []*tracetest.SpanStub
}

// newTree refuses spans that are not one trace and its transactions.
func newTree(t *testing.T, all tracetest.SpanStubs) *tree {
	x := &tree{t: t, children: map[trace.SpanID][]*tracetest.SpanStub{}, place: map[trace.SpanID]int{}}
	for i := range all {
		switch s := &all[i]; {
		case s.Name == "COMMIT":
			x.commits = append(x.commits, s)
		case s.Parent.IsValid():
			x.children[s.Parent.SpanID()] = append(x.children[s.Parent.SpanID()], s)
		case x.root != nil:
			t.Fatalf("two traces begin: with %s and with %s", x.root.Name, s.Name)
		default:
			x.root = s
		}
	}
	x.draw(x.root)
	require.Equalf(t, len(all), len(x.drawn)+len(x.commits),
		"spans, %d hang together and %d are transactions", len(x.drawn), len(x.commits))
	slices.SortFunc(x.commits, func(a, b *tracetest.SpanStub) int { return x.first(a) - x.first(b) })
	return x
}

// draw puts a span and what is below it in order.
func (x *tree) draw(s *tracetest.SpanStub) {
	if s.SpanContext.TraceID() != x.root.SpanContext.TraceID() {
		x.t.Errorf("%s is of another trace", s.Name)
	}
	x.place[s.SpanContext.SpanID()] = len(x.drawn)
	x.drawn = append(x.drawn, s)
	below := x.children[s.SpanContext.SpanID()]
	slices.SortFunc(below, func(a, b *tracetest.SpanStub) int { return strings.Compare(a.Name, b.Name) })
	for _, child := range below {
		x.draw(child)
	}
}

// first is the place of the first span that a transaction is linked to.
func (x *tree) first(commit *tracetest.SpanStub) int {
	if len(commit.Links) == 0 {
		x.t.Fatal("a transaction without a link")
	}
	at, known := x.place[commit.Links[0].SpanContext.SpanID()]
	if !known {
		x.t.Fatal("a transaction is linked to nothing of the trace")
	}
	return at
}

// checkCommits checks the transactions: each is in a trace of its own without parent or child, and linked to and from the commands that it
// commits.
func (x *tree) checkCommits() {
	var of []string
	for _, c := range x.commits {
		if c.Parent.IsValid() || c.SpanContext.TraceID() == x.root.SpanContext.TraceID() || len(x.children[c.SpanContext.SpanID()]) > 0 {
			x.t.Error("a transaction is a part of the trace")
		}
		command := x.drawn[x.first(c)]
		of = append(of, command.Name)
		if !slices.ContainsFunc(command.Links, func(l sdktrace.Link) bool { return l.SpanContext.SpanID() == c.SpanContext.SpanID() }) {
			x.t.Errorf("%s is not linked to its transaction", command.Name)
		}
	}
	if want := []string{"submit order.pay", "attempt order.pay", "process warehouse"}; !slices.Equal(of, want) {
		x.t.Errorf("transactions of %q, not of %q", of, want)
	}
}

// mermaid draws the tree. Transactions are drawn next to it.
func (x *tree) mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, s := range x.drawn {
		fmt.Fprintf(&b, "    s%d[\"%s<br/><b>%s</b>\"]:::%s\n", i, who(s), s.Name, class(s))
		if s != x.root {
			fmt.Fprintf(&b, "    s%d --> s%d\n", x.place[s.Parent.SpanID()], i)
		}
	}
	for i, c := range x.commits {
		fmt.Fprintf(&b, "    t%d([\"%s<br/><b>%s</b>\"]):::%s\n    s%d <-. linked .-> t%d\n", i, who(c), c.Name, class(c), x.first(c), i)
	}
	b.WriteString("    classDef pawl fill:#dbeafe,stroke:#1d4ed8,color:#111\n    classDef other fill:#f3f4f6,stroke:#6b7280,color:#111\n")
	return b.String()
}

func who(s *tracetest.SpanStub) string {
	name := s.InstrumentationScope.Name
	if name == opentelemetry.Name {
		name = "Pawl"
	}
	return name + ", " + s.SpanKind.String()
}

func class(s *tracetest.SpanStub) string {
	if s.InstrumentationScope.Name == opentelemetry.Name {
		return "pawl"
	}
	return "other"
}

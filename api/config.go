package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/pawlhq/pawl/api/internal/stream"
	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/auth/ticket"
	"github.com/pawlhq/pawl/tracing"
)

// Config configures an API. The zero value is usable; the default of each field is given with it.
type Config struct {
	Logger   *slog.Logger // slog.Default()
	Identify Identify     // Loopback
	Limits   Limits
	Stream   Stream

	// PublicURL is where clients reach the interface through a proxy, such as "https://example.com/pawl". Its path is the prefix of
	// Location, of the ticket's cookie and of the addresses in /openapi.json and /asyncapi.json; requests are served with the prefix
	// and without it. Its pages are served like those of Origins. Patterns of Routes are without the prefix. Empty means that the
	// interface is at the root of the host that clients name.
	PublicURL string

	// Origins are the exact origins whose pages may call the API, such as "https://shop.example.com", without wildcards. They also apply to
	// WebSockets, but not to Routes. Defaults to none.
	Origins []string

	// AccessLog logs each request at level Info when it is answered, else at Debug: its
	// route, not its path or query.
	AccessLog bool
	// AccessLogSkipsHealth logs requests of /healthz, /readyz and /metrics at level Debug, whatever AccessLog is.
	AccessLogSkipsHealth bool

	// Tickets makes and takes tickets, whatever Identify takes; see [ticket.Tickets]. None.
	Tickets Tickets

	// Inbox takes signed messages for these consumers; none.
	Inbox map[string]Consumer

	// Routes are additional routes, by pattern as in [http.ServeMux]. The API's own are /v1 and /docs and everything below, /healthz, /readyz,
	// /metrics, /openapi.json and /asyncapi.json: New refuses a pattern for one of them, and a pattern that also matches them does not receive
	// their requests. Identify does not apply to these routes. If it is Loopback, they are also served for loopback hosts only, which prevents
	// DNS rebinding; requests of pages of other origins reach them unless they check Origin. Defaults to none.
	Routes map[string]http.Handler

	// Refused is told of each caller who is refused for want of a credential or a grant, with the
	// reason in a word; see [auth.Reason]. None.
	Refused func(reason string)

	// Health checks the dependencies of Identify for GET /readyz: it returns a warning, "" for none, or an error if callers cannot be
	// identified. Both are public. Defaults to none.
	Health func() (warning string, err error)

	// Keys stores API keys, for /v1/keys; Identify verifies them. Nil disables these routes.
	Keys APIKeys

	// KeepScheduled takes commands that are for after the end of the credential which sends them. By default they are refused, because
	// engine.Config.Recheck would refuse them then.
	KeepScheduled bool

	// Tracer receives the requests of the API's own routes under /v1/. Nil disables tracing.
	Tracer tracing.Tracer

	// Metrics serves GET /metrics to every [OperatorOfAll]. Nil disables the route.
	Metrics http.Handler
}

// Tickets makes tickets, and says who has one. Its errors are *workflow.Error, of Verify with an [auth.Refusal] as their
// cause where the ticket is not taken.
type Tickets interface {
	Issue(ctx context.Context, t *ticket.Ticket) (string, error)
	Verify(ctx context.Context, text string) (auth.Principal, error)
}

// DefaultWait is the default of [Limits].Wait.
const DefaultWait = 25 * time.Second

// Limits bound what one request may send and take, and what one tenant.
type Limits struct {
	Body      int64 // bytes of a command's body; 1 MiB
	BulkBody  int64 // bytes of a bulk request; 16 MiB, or what Memory lets one request send if that is less
	BulkItems int   // commands of a bulk request; 1,000

	// WriteTime is how long a caller may take to read a piece of an answer, 64 KiB; 30
	// seconds. Streams have a time of their own.
	WriteTime time.Duration

	// Wait is the longest that a request may wait for something new ("Prefer: wait=N"). Defaults to 25 seconds, which is less than
	// common time limits of proxies and load balancers.
	Wait time.Duration

	// Open is the maximum number of open requests and streams of each tenant on this node; a credential may have half as many. Those of
	// operators are not counted. Zero means no limit.
	Open int

	// Memory is the number of bytes that requests and streams may use on this node, by an upper estimate. Defaults to a third of the memory
	// limit of the process (GOMEMLIMIT), to 512 MiB without a limit, and to at least 64 MiB. Tenants, credentials and operators have shares of
	// it. A request beyond its share waits for a moment, and is then refused with RateLimited or Overloaded.
	Memory int64

	// Rate is the number of commands per second that each tenant may send to this node, including each command of a bulk request. Zero means
	// no limit.
	Rate float64
	// Burst is how many of them may come at once; a second's worth of Rate, and at
	// least BulkItems. A bulk request with more is too large.
	Burst int

	// CredentialRate and CredentialBurst are the same for each actor of a tenant, whichever credentials it uses. Zero means no limit.
	CredentialRate  float64
	CredentialBurst int
}

// Stream bounds and paces WebSocket connections and event streams.
type Stream = stream.Config

// withDefaults fills the zero fields and refuses negative ones.
func (c Config) withDefaults() (Config, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = slog.New(logHandler{c.Logger.Handler()})
	if c.Identify == nil {
		c.Identify = Loopback
	}
	if err := CheckOrigins(c.Origins); err != nil {
		return c, fmt.Errorf("api: Config.Origins: %w", err)
	}
	var err error
	if c.Inbox, err = checkConsumers(c.Inbox); err != nil {
		return c, err
	}
	fill(&err, "Limits.Memory", &c.Limits.Memory, defaultMemory())
	fill(&err, "Limits.Body", &c.Limits.Body, 1<<20)
	largest := largestBody(c.Limits.Memory)
	fill(&err, "Limits.BulkBody", &c.Limits.BulkBody, min(16<<20, largest))
	if largest = max(c.Limits.Body, c.Limits.BulkBody) - largest; err == nil && largest > 0 {
		err = fmt.Errorf("api: Config.Limits.Memory is too small for a body of Body or BulkBody bytes: it lacks %d", largest*8/partOfCredential)
	}
	fill(&err, "Limits.BulkItems", &c.Limits.BulkItems, 1000)
	fill(&err, "Limits.WriteTime", &c.Limits.WriteTime, 30*time.Second)
	fill(&err, "Limits.Wait", &c.Limits.Wait, DefaultWait)
	fill(&err, "Limits.Open", &c.Limits.Open, 0)
	fillRate(&err, "Limits.Rate", c.Limits.Rate, "Limits.Burst", &c.Limits.Burst, c.Limits.BulkItems)
	fillRate(&err, "Limits.CredentialRate", c.Limits.CredentialRate, "Limits.CredentialBurst", &c.Limits.CredentialBurst, c.Limits.BulkItems)
	fill(&err, "Stream.MaxLag", &c.Stream.MaxLag, 10_000)
	fill(&err, "Stream.WriteTimeout", &c.Stream.WriteTimeout, 10*time.Second)
	fill(&err, "Stream.PingEvery", &c.Stream.PingEvery, 20*time.Second)
	fill(&err, "Stream.CommentEvery", &c.Stream.CommentEvery, 15*time.Second)
	fill(&err, "Stream.WritesPerSecond", &c.Stream.WritesPerSecond, 50_000)
	fill(&err, "Stream.MessageSize", &c.Stream.MessageSize, 64<<10)
	fill(&err, "Stream.Subscriptions", &c.Stream.Subscriptions, 64)
	return c, err
}

// defaultMemory is the part of the process's memory that callers may take.
func defaultMemory() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 512 << 20
	}
	return max(limit/3, 64<<20)
}

func fill[T int | int64 | time.Duration](err *error, name string, field *T, value T) {
	switch {
	case *field == 0:
		*field = value
	case *field < 0 && *err == nil:
		*err = fmt.Errorf("api: Config.%s is negative: %v", name, *field)
	}
}

// fillRate checks a rate, and fills how many may come at once.
func fillRate(err *error, name string, rate float64, burstName string, burst *int, least int) {
	if !(rate >= 0) || math.IsInf(rate, 1) {
		*err = cmp.Or(*err, fmt.Errorf("api: Config.%s is not a number of commands a second: %v", name, rate))
	}
	fill(err, burstName, burst, max(int(min(math.Ceil(rate), math.MaxInt32)), least))
}

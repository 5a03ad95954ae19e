package arch_test

// Room is a package, or a tree of packages where its path ends in "/...", with
// what its code may import. Tests may import more; see [Check].
type Room struct {
	Path    string   // below the module; "." is its root
	Ours    []string // paths below the module; All is everything
	Modules []string // other people's modules
}

// All among a room's own imports stands for every package of the module.
const All = "..."

// The modules that Pawl depends on. docs/decisions/0002-dependencies.md gives their purposes.
const (
	cdproto    = "github.com/chromedp/cdproto"
	chromedp   = "github.com/chromedp/chromedp"
	cobra      = "github.com/spf13/cobra"
	jose       = "github.com/go-jose/go-jose/v4"
	errgroup   = "golang.org/x/sync"
	embedded   = "github.com/fergusstrange/embedded-postgres"
	json       = "github.com/go-json-experiment/json"
	jsonschema = "github.com/google/jsonschema-go"
	kinOpenAPI = "github.com/getkin/kin-openapi"
	nats       = "github.com/nats-io/nats.go"
	natsServer = "github.com/nats-io/nats-server/v2"
	oauth2     = "golang.org/x/oauth2"
	pgx        = "github.com/jackc/pgx/v5"
	otel       = "go.opentelemetry.io/otel"
	otelSDK    = "go.opentelemetry.io/otel/sdk"
	otelTrace  = "go.opentelemetry.io/otel/trace"
	prometheus = "github.com/prometheus/client_golang"
	rate       = "golang.org/x/time"
	cron       = "github.com/robfig/cron/v3"
	river      = "github.com/riverqueue/river"
	uuid       = "github.com/google/uuid"
	validator  = "github.com/go-playground/validator/v10"
	watermill  = "github.com/ThreeDotsLabs/watermill"
	memlimit   = "github.com/KimMachineGun/automemlimit"
	overNATS   = "github.com/ThreeDotsLabs/watermill-nats/v2"
	websocket  = "github.com/gorilla/websocket"
)

// Matrix is who may import whom, from the pure to what composes it: a room imports only
// rooms of earlier rows. Why it is so is told in docs/decisions/0001-import-matrix.md.
var Matrix = []Room{
	// Declarations, and decisions about commands: no clock, no database.
	{"internal/schemagen", nil, mods(json, jsonschema, uuid, validator)},
	{"workflow/internal/unknown", ours("internal/schemagen"), mods(json)},
	{"internal/chart", nil, nil},
	{"workflow", ours("internal/chart", "internal/schemagen", "workflow/internal/unknown"), mods(json, uuid, validator)},
	{"workflow/diagram", ours("workflow"), nil},
	{"schedule", ours("workflow"), mods(cron, json)},
	{"tracing", nil, mods(uuid)},
	{"transitions", ours("tracing", "workflow"), mods(json, uuid)},
	{"inspect", ours("schedule", "transitions", "workflow"), mods(uuid)},
	{"internal/kernel/decide", ours("inspect", "tracing", "transitions", "workflow"), mods(json, uuid)},
	{"internal/kernel/definitions", ours("internal/kernel/decide", "workflow"), mods(uuid)},

	{"internal/kernel/backoff", ours("workflow"), nil},
	{"internal/kernel/sqlstate", ours("workflow"), mods(pgx)},

	// What knows nothing of workflows.
	{"internal/kernel/build", nil, nil},
	{"internal/kernel/loop", nil, nil},
	{"app/progress", nil, nil},
	{"app/usage", nil, nil},
	{"app/dialerror", nil, nil},
	{"app/server", nil, nil},
	{"app/sdnotify", nil, nil},
	{"internal/kernel/clock", nil, mods(pgx)},
	{"internal/kernel/rows", nil, mods(pgx, uuid)},
	{"internal/kernel/notify", ours("internal/kernel/backoff", "workflow"), mods(pgx)},
	{"schema/pooler", nil, mods(pgx)},
	{"schema", ours("schema/pooler"), mods(pgx)},
	{"internal/localpg", nil, mods(embedded, pgx)},
	{"internal/testkit/bouncer", nil, mods(pgx)},
	{"internal/testkit/pgtest", ours("internal/localpg", "internal/testkit/bouncer"), mods(pgx)},
	{"internal/testkit/tables", ours("internal/testkit/pgtest", "schema"), mods(pgx)},
	{"internal/testkit/arch", nil, nil},
	{"internal/testkit/await", nil, nil},
	{"internal/testkit/prose", nil, nil},
	{"internal/testkit/docs", nil, nil},
	{"app/sdnotify/sdnotifytest", ours("internal/testkit/await"), nil},
	{"internal/testkit/chromium", ours("internal/testkit/await"), mods(cdproto, chromedp, json)},
	{"internal/testkit/testlog", nil, nil},
	{"internal/testkit/faults", nil, nil},
	{"internal/testkit/upgrades", nil, nil},

	// The tables.
	{"internal/kernel/audit", ours("internal/kernel/rows", "transitions"), mods(pgx, uuid)},
	{"internal/kernel/store", ours("internal/kernel/audit", "inspect", "internal/kernel/decide", "internal/kernel/rows", "transitions",
		"workflow"), mods(json, pgx, uuid)},
	{"internal/kernel/outbox", ours("internal/kernel/audit", "internal/kernel/rows", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"audit/verify", ours(
		"internal/kernel/audit", "inspect", "internal/kernel/decide", "internal/kernel/store", "internal/kernel/outbox", "transitions",
		"workflow",
	), mods(json, pgx, uuid)},

	// Out and in.
	{"outbox/feed", ours("internal/kernel/backoff", "internal/kernel/outbox", "transitions", "workflow"), nil},
	{"inbox/signature", nil, nil},
	{"outbox/sink", ours("transitions"), mods(uuid)},
	{"outbox/sink/file", ours("outbox/sink", "transitions"), nil},
	{"outbox/sink/jetstream", ours("outbox/sink", "transitions"), mods(nats)},
	{"outbox/sink/natstest", nil, mods(natsServer)},
	{"outbox/sink/sinktest", ours("outbox/sink", "transitions"), mods(uuid)},
	{"outbox/sink/watermill", ours("outbox/sink", "transitions"), mods(overNATS, uuid, watermill)}, // overNATS for its test
	{"outbox/sink/webhook", ours("inbox/signature", "outbox/sink", "transitions"), nil},
	{"outbox/relay", ours(
		"inspect", "internal/kernel/loop", "internal/kernel/backoff", "internal/kernel/store", "internal/kernel/outbox", "outbox/sink", "tracing", "transitions",
		"workflow",
	), mods(pgx, uuid)},
	{"inbox/jetstream", ours("internal/kernel/backoff", "tracing", "transitions", "workflow"), mods(nats)},
	{"inbox", ours("inspect", "internal/kernel/backoff", "internal/kernel/store", "transitions", "workflow"), mods(pgx)},

	// The runtime.
	{"engine/internal/commit", ours(
		"internal/kernel/audit", "inspect", "internal/kernel/clock", "internal/kernel/decide", "internal/kernel/backoff", "internal/kernel/rows",
		"internal/kernel/sqlstate", "internal/kernel/store",
		"internal/kernel/outbox", "tracing", "transitions", "workflow",
	), mods(pgx, uuid)},
	{"engine/internal/inflight", ours("internal/kernel/decide", "internal/kernel/backoff", "internal/kernel/store", "tracing", "transitions",
		"workflow"), mods(pgx)},
	{"engine/internal/migrate", ours("inspect", "internal/kernel/clock", "internal/kernel/decide", "internal/kernel/loop",
		"internal/kernel/store", "transitions",
		"workflow"),
		mods(json, pgx, uuid)},
	{"engine/internal/retention", ours(
		"inbox", "inspect", "internal/kernel/clock", "internal/kernel/decide", "internal/kernel/loop", "internal/kernel/store", "outbox/relay",
	), mods(pgx)},
	{"engine/internal/schedules", ours("inspect", "internal/kernel/clock", "internal/kernel/decide", "internal/kernel/loop",
		"internal/kernel/store", "schedule", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"engine/internal/watch", ours("internal/kernel/clock", "internal/kernel/decide", "internal/kernel/backoff", "transitions", "workflow"),
		nil},
	{"engine", ours(
		"internal/kernel/audit", "audit/verify", "engine/internal/commit", "engine/internal/inflight", "engine/internal/migrate",
		"engine/internal/retention", "engine/internal/schedules",
		"engine/internal/watch",
		"inbox", "inspect", "internal/kernel/build", "internal/kernel/clock", "internal/kernel/decide", "internal/kernel/definitions",
		"internal/kernel/notify", "internal/kernel/loop", "schema/pooler",
		"internal/kernel/store", "internal/kernel/outbox", "outbox/feed", "outbox/relay", "schedule", "schema", "tracing", "transitions", "workflow",
	), mods(json, pgx, uuid)},
	{"tracing/opentelemetry", ours("tracing"), mods(otel, otelTrace, uuid)},
	{"tracing/opentelemetry/sampler", nil, mods(otelSDK, otelTrace)},
	{"deploy", nil, nil}, // tests of the files for operators
	{"metrics", ours("engine", "inspect", "outbox/relay"), mods(prometheus)},

	{"app/doctor", ours("engine", "inspect", "app/dialerror", "schema/pooler", "schema", "workflow"), mods(pgx)},

	// Who calls, and what he may.
	{"auth", ours("transitions", "workflow"), mods(uuid)},
	{"auth/internal/idp", nil, nil},
	{"auth/internal/jws", nil, nil},
	{"auth/jwt", ours("auth", "auth/internal/idp", "auth/internal/jws", "internal/kernel/backoff", "transitions", "workflow"), mods(jose, json)},
	{"auth/apikey", ours("auth", "internal/kernel/backoff", "transitions", "workflow"), mods(pgx)},
	{"auth/ticket", ours("auth", "auth/internal/jws", "transitions", "workflow"), mods(jose, json, uuid)},
	{"auth/ticket/keyset", ours("auth/ticket", "internal/kernel/clock", "workflow"), mods(pgx, uuid)},
	{"auth/session", ours("auth", "auth/ticket", "workflow"), mods(json, uuid)},
	{"auth/login", ours("auth", "auth/internal/idp", "workflow"), mods(json, oauth2)},
	{"auth/authtest", nil, mods(jose)},

	// HTTP.
	{"api/internal/parse", ours("workflow"), mods(json, uuid)},
	{"api/wire", ours("auth", "transitions", "workflow"), mods(json, uuid)},
	{"api/internal/budget", ours("workflow"), nil},
	{"api/internal/stream", ours("api/internal/budget", "api/internal/parse", "api/wire", "auth", "engine", "internal/kernel/backoff", "transitions",
		"workflow"),
		mods(json, websocket)},
	{"api/internal/streamtest", nil, nil},
	{"api/internal/contract", nil, mods(jsonschema)},
	{"api", ours(
		"api/internal/budget", "api/internal/contract", "api/internal/parse", "api/internal/stream", "api/wire", "auth", "auth/apikey",
		"auth/ticket", "engine", "inspect", "internal/schemagen",
		"tracing", "transitions", "workflow", "workflow/diagram",
	), mods(json, jsonschema, rate, uuid)},
	{"console", ours("api", "api/wire", "auth", "auth/login", "auth/session", "inspect", "transitions", "workflow"), mods(json, uuid)},

	// Who uses it.
	{"client", ours("api/wire", "internal/kernel/backoff", "transitions", "workflow"), mods(json, uuid, websocket)},
	{"examples/...", ours("auth", "client", "examples/...", "workflow"), mods(json, pgx, uuid)},
	{"pawltest", ours(
		"engine", "inspect", "internal/kernel/decide", "internal/kernel/definitions", "internal/testkit/pgtest", "schema", "transitions",
		"workflow",
	), mods(json, pgx, uuid)},
	{"bench", ours(
		"api", "api/wire", "auth", "auth/apikey", "auth/jwt", "engine", "inbox/signature", "inspect", "internal/kernel/decide",
		"internal/testkit/bouncer", "internal/kernel/backoff", "app/progress", "outbox/relay",
		"outbox/sink", "outbox/sink/file", "outbox/sink/jetstream", "outbox/sink/webhook", "schema", "tracing/opentelemetry",
		"transitions", "workflow",
	), mods(json, otelSDK, pgx, uuid, websocket)},
	{"examples/fines/replay/eventlog", ours("examples/fines", "transitions"), nil},
	{"examples/fines/replay/fold", nil, nil},
	{"examples/fines/replay", ours(
		"api/wire", "examples/fines", "inspect", "internal/kernel/backoff", "app/progress", "examples/fines/replay/eventlog",
		"examples/fines/replay/fold", "schema", "transitions", "workflow",
	), mods(json, pgx, uuid)},

	// What composes it.
	{"app/service", ours(
		"api", "auth", "auth/apikey", "auth/jwt", "auth/login", "auth/session", "auth/ticket", "auth/ticket/keyset", "console", "engine", "inbox",
		"inbox/signature", "app/dialerror", "internal/localpg", "schema/pooler", "app/server", "app/usage", "metrics",
		"outbox/relay", "schema", "tracing", "transitions", "workflow",
	), mods(pgx)},
	{"app/cli/flags", ours("client", "app/usage", "transitions", "workflow"), mods(cobra, json, uuid)},
	{"app/cli/output", ours("api/wire", "transitions"), mods(cobra, json)},
	{"app/cli/ops", ours(
		"api", "api/wire", "auth", "auth/apikey", "inspect", "app/cli/flags", "app/cli/output", "app/progress", "app/usage",
		"transitions", "workflow",
	), mods(cobra, json, uuid)},
	{"app/cli/remote", ours(
		"api/wire", "client", "app/cli/flags", "app/cli/output", "app/progress", "app/usage", "workflow",
	), mods(cobra, json, uuid)},
	{"app/cli", ours(
		"api", "auth", "auth/apikey", "auth/jwt", "auth/login", "client", "console", "engine", "inbox/signature", "inspect",
		"internal/kernel/build", "app/cli/flags", "app/cli/ops",
		"app/cli/output", "app/cli/remote", "app/doctor", "app/progress", "app/sdnotify", "app/service",
		"app/usage", "outbox/relay", "outbox/sink/file", "outbox/sink/jetstream", "outbox/sink/webhook", "schema", "transitions",
		"workflow", "workflow/diagram",
	), mods(cobra, json, memlimit, uuid)},
	{".", ours("engine", "app/cli", "app/service", "app/usage", "transitions", "workflow"), nil},
	{"bench/cmd/bench", ours("bench", "internal/localpg"), nil},
	{"bench/cmd/river", ours("bench", "internal/localpg"), mods(errgroup, pgx, river)},
	{"bench/cmd/withnats", ours("outbox/sink/natstest"), nil},
	{"cmd/...", ours(All), mods(cobra, json, pgx, uuid, websocket)},
}

func ours(paths ...string) []string   { return paths }
func mods(modules ...string) []string { return modules }

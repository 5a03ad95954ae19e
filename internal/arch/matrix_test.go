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

// The modules that Pawl stands on. What each is for is told in
// docs/decisions/0002-dependencies.md.
const (
	cobra      = "github.com/spf13/cobra"
	jose       = "github.com/go-jose/go-jose/v4"
	embedded   = "github.com/fergusstrange/embedded-postgres"
	json       = "github.com/go-json-experiment/json"
	jsonschema = "github.com/google/jsonschema-go"
	kinOpenAPI = "github.com/getkin/kin-openapi"
	libOpenAPI = "github.com/pb33f/libopenapi"
	libChecks  = "github.com/pb33f/libopenapi-validator"
	nats       = "github.com/nats-io/nats.go"
	natsServer = "github.com/nats-io/nats-server/v2"
	pgx        = "github.com/jackc/pgx/v5"
	otel       = "go.opentelemetry.io/otel"
	otelSDK    = "go.opentelemetry.io/otel/sdk"
	otelTrace  = "go.opentelemetry.io/otel/trace"
	prometheus = "github.com/prometheus/client_golang"
	rate       = "golang.org/x/time"
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
	// What a user declares, and what becomes of a command: no clock, no database.
	{"workflow/internal/schemagen", nil, mods(json, jsonschema, uuid, validator)},
	{"workflow/internal/unknown", ours("workflow/internal/schemagen"), mods(json)},
	{"workflow", ours("workflow/internal/schemagen", "workflow/internal/unknown"), mods(json, uuid, validator)},
	{"workflow/diagram", ours("workflow"), nil},
	{"tracing", nil, mods(uuid)},
	{"transitions", ours("tracing", "workflow"), mods(json, uuid)},
	{"inspect", ours("transitions", "workflow"), mods(uuid)},
	{"internal/decide", ours("inspect", "tracing", "transitions", "workflow"), mods(json, uuid)},
	{"internal/definitions", ours("internal/decide", "transitions", "workflow"), mods(uuid)},

	{"internal/sqlstate", ours("workflow"), mods(pgx)},

	// What knows nothing of workflows.
	{"internal/build", nil, nil},
	{"internal/loop", nil, nil},
	{"internal/pause", nil, nil},
	{"internal/progress", nil, nil},
	{"internal/usage", nil, nil},
	{"internal/dialerror", nil, nil},
	{"internal/server", nil, nil},
	{"internal/sdnotify", nil, nil},
	{"internal/clock", nil, mods(pgx)},
	{"internal/rows", nil, mods(pgx, uuid)},
	{"internal/hints", ours("internal/pause"), mods(pgx)},
	{"internal/pooler", nil, mods(pgx)},
	{"schema", ours("internal/pooler"), mods(pgx)},
	{"internal/localpg", nil, mods(embedded, pgx)},
	{"internal/pgtest", ours("internal/localpg"), mods(pgx)},
	{"internal/tables", ours("internal/pgtest", "schema"), mods(pgx)},
	{"internal/arch", nil, nil},
	{"internal/await", nil, nil},
	{"internal/sdnotify/sdnotifytest", ours("internal/await"), nil},
	{"internal/chromium", ours("internal/await"), mods(json, websocket)},
	{"internal/testlog", nil, nil},
	{"internal/faults", nil, nil},
	{"internal/upgrades", nil, nil},

	// The tables.
	{"audit", ours("internal/rows", "transitions"), mods(pgx, uuid)},
	{"internal/store", ours("audit", "inspect", "internal/decide", "internal/rows", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"outbox", ours("audit", "internal/rows", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"audit/verify", ours(
		"audit", "inspect", "internal/decide", "internal/store", "outbox", "transitions", "workflow",
	), mods(json, pgx, uuid)},

	// Out and in.
	{"outbox/feed", ours("internal/pause", "outbox", "transitions", "workflow"), nil},
	{"inbox/signature", nil, nil},
	{"outbox/sink", ours("transitions"), mods(uuid)},
	{"outbox/sink/file", ours("outbox/sink", "transitions"), nil},
	{"outbox/sink/jetstream", ours("outbox/sink", "transitions"), mods(nats)},
	{"outbox/sink/natstest", nil, mods(natsServer)},
	{"outbox/sink/sinktest", ours("outbox/sink", "transitions"), mods(uuid)},
	{"outbox/sink/watermill", ours("outbox/sink", "transitions"), mods(overNATS, uuid, watermill)}, // overNATS for its test
	{"outbox/sink/webhook", ours("inbox/signature", "outbox/sink", "transitions"), nil},
	{"outbox/relay", ours(
		"inspect", "internal/pause", "internal/store", "outbox", "outbox/sink", "tracing", "transitions", "workflow",
	), mods(pgx, uuid)},
	{"inbox/jetstream", ours("tracing", "transitions", "workflow"), mods(nats)},
	{"inbox", ours("inspect", "internal/pause", "internal/store", "transitions", "workflow"), mods(pgx)},

	// The runtime.
	{"engine/internal/commit", ours(
		"audit", "inspect", "internal/clock", "internal/decide", "internal/pause", "internal/rows", "internal/sqlstate", "internal/store",
		"outbox", "tracing", "transitions", "workflow",
	), mods(pgx, uuid)},
	{"engine/internal/inflight", ours("internal/decide", "internal/pause", "internal/store", "tracing", "transitions", "workflow"), mods(pgx)},
	{"engine/internal/migrate", ours("inspect", "internal/clock", "internal/decide", "internal/loop", "internal/store", "transitions",
		"workflow"),
		mods(json, pgx, uuid)},
	{"engine/internal/retention", ours(
		"inbox", "inspect", "internal/clock", "internal/decide", "internal/loop", "internal/store", "outbox/relay",
	), mods(pgx)},
	{"engine/internal/watch", ours("internal/clock", "internal/decide", "internal/pause", "transitions", "workflow"), nil},
	{"engine", ours(
		"audit", "audit/verify", "engine/internal/commit", "engine/internal/inflight", "engine/internal/migrate", "engine/internal/retention",
		"engine/internal/watch",
		"inbox", "inspect", "internal/build", "internal/clock", "internal/decide", "internal/definitions", "internal/hints", "internal/pooler",
		"internal/store", "outbox", "outbox/feed", "outbox/relay", "schema", "tracing", "transitions", "workflow",
	), mods(json, pgx, uuid)},
	{"tracing/opentelemetry", ours("tracing"), mods(otel, otelTrace, uuid)},
	{"tracing/opentelemetry/sampler", nil, mods(otelSDK, otelTrace)},
	{"metrics", ours("engine", "inspect", "internal/server", "outbox/relay"), mods(prometheus)},
	{"metrics/monitoring", ours("metrics"), nil},

	{"internal/doctor", ours("engine", "inspect", "internal/dialerror", "internal/pooler", "schema", "workflow"), mods(pgx)},

	// Who calls, and what he may.
	{"auth", ours("transitions", "workflow"), mods(uuid)},
	{"auth/internal/jws", nil, nil},
	{"auth/jwt", ours("auth", "auth/internal/jws", "internal/pause", "transitions", "workflow"), mods(jose, json)},
	{"auth/apikey", ours("auth", "internal/pause", "transitions", "workflow"), mods(pgx)},
	{"auth/ticket", ours("auth", "auth/internal/jws", "transitions", "workflow"), mods(jose, json, uuid)},
	{"auth/ticket/ring", ours("auth/ticket", "internal/clock", "workflow"), mods(pgx, uuid)},
	{"auth/session", ours("auth", "auth/ticket", "workflow"), mods(json, uuid)},
	{"auth/login", ours("auth", "workflow"), mods(json)},
	{"auth/authtest", nil, mods(jose)},

	// HTTP.
	{"api/internal/parse", ours("workflow"), mods(json, uuid)},
	{"api/wire", ours("auth", "transitions", "workflow"), mods(json, uuid)},
	{"api/internal/budget", ours("workflow"), nil},
	{"api/internal/stream", ours("api/internal/budget", "api/internal/parse", "api/wire", "auth", "internal/pause", "transitions", "workflow"),
		mods(json, websocket)},
	{"api/internal/streamtest", nil, nil},
	{"api/internal/contract", nil, mods(json, jsonschema, uuid)},
	{"api/internal/contracttest", nil, mods(kinOpenAPI, libOpenAPI, libChecks)},
	{"api", ours(
		"api/internal/budget", "api/internal/contract", "api/internal/parse", "api/internal/stream", "api/wire", "auth", "auth/apikey", "auth/ticket", "inspect",
		"tracing", "transitions", "workflow", "workflow/diagram",
	), mods(json, jsonschema, rate, uuid)},
	{"console", ours("api", "api/wire", "auth", "auth/login", "auth/session", "transitions", "workflow"), mods(json, uuid)},

	// Who uses it.
	{"client", ours("api/wire", "internal/pause", "transitions", "workflow"), mods(json, uuid, websocket)},
	{"examples/...", ours("auth", "client", "examples/...", "workflow"), mods(json, pgx, uuid)},
	{"pawltest", ours(
		"engine", "inspect", "internal/decide", "internal/definitions", "internal/pgtest", "schema", "transitions", "workflow",
	), mods(json, pgx, uuid)},
	{"bench", ours(
		"api", "auth", "auth/apikey", "auth/jwt", "engine", "inbox/signature", "inspect", "internal/decide", "internal/localpg",
		"internal/pause", "internal/progress", "outbox/relay",
		"outbox/sink", "outbox/sink/file", "outbox/sink/jetstream", "outbox/sink/webhook", "schema", "tracing/opentelemetry",
		"transitions", "workflow",
	), mods(json, otelSDK, pgx, uuid, websocket)},
	{"internal/withnats", ours("outbox/sink/natstest"), nil},
	{"internal/replay/eventlog", ours("examples/fines", "transitions"), nil},
	{"internal/replay/fold", nil, nil},
	{"internal/replay", ours(
		"api", "examples/fines", "inspect", "internal/pause", "internal/progress", "internal/replay/eventlog",
		"internal/replay/fold", "schema", "transitions", "workflow",
	), mods(json, pgx, uuid)},

	// What composes it.
	{"internal/service", ours(
		"api", "auth", "auth/apikey", "auth/jwt", "auth/login", "auth/session", "auth/ticket", "auth/ticket/ring", "console", "engine", "inbox",
		"inbox/signature", "internal/dialerror", "internal/localpg", "internal/pooler", "internal/server", "internal/usage", "metrics",
		"outbox/relay", "schema", "tracing", "transitions", "workflow",
	), mods(pgx)},
	{"internal/cli/flags", ours("client", "internal/usage", "transitions", "workflow"), mods(cobra, json, uuid)},
	{"internal/cli/output", ours("api/wire", "transitions"), mods(cobra, json)},
	{"internal/cli/ops", ours(
		"api", "api/wire", "auth", "auth/apikey", "engine", "inspect", "internal/cli/flags", "internal/cli/output", "internal/progress",
		"internal/usage",
		"transitions", "workflow",
	), mods(cobra, uuid)},
	{"internal/cli/remote", ours(
		"api/wire", "client", "internal/cli/flags", "internal/cli/output", "internal/progress", "internal/usage", "transitions", "workflow",
	), mods(cobra, json, uuid)},
	{"internal/cli", ours(
		"api", "auth", "auth/apikey", "auth/jwt", "auth/login", "client", "console", "engine", "inbox/signature", "inspect",
		"internal/build", "internal/cli/flags", "internal/cli/ops",
		"internal/cli/output", "internal/cli/remote", "internal/doctor", "internal/progress", "internal/sdnotify", "internal/service",
		"internal/usage", "outbox/relay", "outbox/sink/file", "outbox/sink/jetstream", "outbox/sink/webhook", "schema", "transitions",
		"workflow", "workflow/diagram",
	), mods(cobra, json, memlimit, uuid)},
	{".", ours("engine", "internal/cli", "internal/service", "internal/usage", "transitions", "workflow"), mods(cobra)},
	{"cmd/...", ours(All), mods(cobra, json, pgx, uuid, websocket)},
}

func ours(paths ...string) []string   { return paths }
func mods(modules ...string) []string { return modules }

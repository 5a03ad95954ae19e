package arch

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
	embedded   = "github.com/fergusstrange/embedded-postgres"
	json       = "github.com/go-json-experiment/json"
	jsonschema = "github.com/google/jsonschema-go"
	nats       = "github.com/nats-io/nats.go"
	natsServer = "github.com/nats-io/nats-server/v2"
	pgx        = "github.com/jackc/pgx/v5"
	prometheus = "github.com/prometheus/client_golang"
	rate       = "golang.org/x/time"
	uuid       = "github.com/google/uuid"
	validator  = "github.com/go-playground/validator/v10"
	watermill  = "github.com/ThreeDotsLabs/watermill"
	overNATS   = "github.com/ThreeDotsLabs/watermill-nats/v2"
	websocket  = "github.com/gorilla/websocket"
)

// Matrix is who may import whom, from the pure to what composes it. Why it is
// so is told in docs/decisions/0001-import-matrix.md.
var Matrix = []Room{
	{"workflow", ours("workflow/internal/schemagen"), mods(json, uuid, validator)},
	{"workflow/internal/schemagen", nil, mods(json, jsonschema, uuid, validator)},
	{"workflow/diagram", ours("workflow"), nil},
	{"transitions", ours("workflow"), mods(json, uuid)},
	{"inspect", ours("transitions", "workflow"), mods(uuid)},

	{"internal/pooler", nil, mods(pgx)},
	{"schema", ours("internal/pooler"), mods(pgx)},
	{"internal/clock", nil, mods(pgx)},
	{"internal/definitions", ours("transitions", "workflow"), mods(uuid)},
	{"internal/rows", nil, mods(pgx, uuid)},
	{"audit", ours("inspect", "internal/rows", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"outbox", ours("internal/rows", "transitions", "workflow"), mods(json, pgx, uuid)},

	{"outbox/feed", ours("outbox", "transitions", "workflow"), nil},
	{"outbox/relay", ours("inspect", "internal/pause", "outbox", "outbox/sink", "transitions", "workflow"), mods(pgx, uuid)},
	{"outbox/sink", ours("transitions"), mods(uuid)},
	{"outbox/sink/file", ours("outbox/sink", "transitions"), nil},
	{"outbox/sink/jetstream", ours("outbox/sink", "transitions"), mods(nats)},
	{"outbox/sink/natstest", nil, mods(natsServer)},
	{"outbox/sink/sinktest", ours("outbox/sink", "transitions"), mods(uuid)},
	{"outbox/sink/watermill", ours("outbox/sink", "transitions"), mods(overNATS, uuid, watermill)}, // overNATS for its test
	{"outbox/sink/webhook", ours("inbox/signature", "outbox/sink", "transitions"), nil},

	{"inbox/signature", nil, nil},
	{"inbox/jetstream", ours("transitions", "workflow"), mods(nats)},

	{"inbox", ours("inspect", "transitions", "workflow"), mods(pgx)},

	{"engine/internal/commit", ours("audit", "internal/clock", "inspect", "internal/pause", "internal/rows", "outbox", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"engine/internal/inflight", ours("internal/pause", "transitions", "workflow"), mods(pgx)},
	{"engine/internal/retention", ours("internal/clock", "inspect", "transitions"), mods(pgx)},
	{"engine/internal/watch", ours("internal/clock", "internal/pause", "transitions", "workflow"), nil},
	{"engine", ours("audit", "internal/clock", "engine/internal/commit", "outbox/feed", "internal/definitions", "internal/hints", "engine/internal/inflight", "engine/internal/retention", "engine/internal/watch", "inbox", "inspect", "internal/pooler", "outbox", "outbox/relay", "schema", "transitions", "workflow"), mods(json, pgx, uuid)},

	{"metrics", ours("engine", "inspect", "outbox/relay", "transitions"), mods(prometheus)},

	{"api", ours("inspect", "internal/pause", "transitions", "workflow", "workflow/diagram"), mods(json, rate, uuid, websocket)},

	{"examples/...", ours("api", "audit", "engine", "examples/...", "inspect", "outbox", "schema", "transitions", "workflow", "workflow/diagram"), mods(json, pgx, uuid)},
	{"pawltest", ours("engine", "inspect", "internal/definitions", "internal/pgtest", "schema", "transitions", "workflow"), mods(json, pgx, uuid)},
	{"bench", ours("api", "audit", "engine", "inbox/signature", "internal/localpg", "internal/pause", "internal/rows", "outbox/relay", "outbox/sink", "outbox/sink/file", "outbox/sink/jetstream", "outbox/sink/webhook", "schema", "transitions", "workflow"), mods(json, pgx, uuid, websocket)},

	{"internal/arch", nil, nil},
	{"internal/await", nil, nil},
	{"internal/cli", nil, mods(cobra, uuid)},
	{"internal/faults", nil, nil},
	{"internal/hints", ours("internal/pause"), mods(pgx)},
	{"internal/localpg", nil, mods(embedded, pgx)},
	{"internal/ops", ours("api", "engine", "inspect", "internal/cli", "transitions", "workflow"), mods(cobra, uuid)},
	{"internal/pause", nil, nil},
	{"internal/pgtest", ours("internal/localpg"), mods(pgx)},
	{"internal/progress", nil, nil},
	{"internal/tables", ours("internal/pgtest", "schema"), mods(pgx)},
	{"internal/testlog", nil, nil},
	{"internal/withnats", ours("outbox/sink/natstest"), nil},

	{".", ours(All), mods(cobra, pgx, uuid)},
	{"cmd/...", ours(All), mods(cobra, json, pgx, uuid, websocket)},
}

func ours(paths ...string) []string   { return paths }
func mods(modules ...string) []string { return modules }

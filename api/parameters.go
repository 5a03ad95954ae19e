package api

import (
	"math"

	"github.com/pawlhq/pawl/auth"
	"github.com/pawlhq/pawl/inspect"
	"github.com/pawlhq/pawl/transitions"
)

// Page sizes, in entries, and how many states a list may be asked for.
const (
	defaultLimit = "100"
	maxLimit     = 1000
	maxStates    = 100
)

// Suffixes of the name of an attribute, which has no dot.
const (
	suffixFrom   = ".from"
	suffixBefore = ".before"
	suffixPrefix = ".prefix"
)

// pathParams are the parts of a path. A name means the same in each.
var pathParams = map[string]Param{
	"id":           {Name: "id", In: InPath, Kind: UUID, Doc: "the id of an instance"},
	"workflow":     {Name: "workflow", In: InPath, Kind: Text, Doc: "the name of a workflow"},
	"business_key": {Name: "business_key", In: InPath, Kind: Text, Doc: "the caller's own number of an instance of the workflow"},
	"transition":   {Name: "transition", In: InPath, Kind: Text, Doc: "the name of a transition"},
	"scope":        {Name: "scope", In: InPath, Kind: Scope, Doc: "the scope of a command"},
	"key":          {Name: "key", In: InPath, Kind: Key, Doc: "the key of a command, which may have slashes in it"},
	"api_key":      {Name: "api_key", In: InPath, Kind: Text, Doc: "the id of an API key"},
	"migration":    {Name: "migration", In: InPath, Kind: Integer, Min: 1, Max: maxPosition, Doc: "the number of a migration"},
	"sink":         {Name: "sink", In: InPath, Kind: Text, Doc: "the name of a sink"},
	"consumer":     {Name: "consumer", In: InPath, Kind: Known, Doc: "who consumes the message, as the node is configured"},
}

// What several routes are asked with.
var (
	dryRun    = Param{Name: "dry_run", In: InQuery, Kind: Boolean, Doc: "decide, and write nothing"}
	pageLimit = Param{Name: "limit", In: InQuery, Kind: Integer, Min: 1, Max: maxLimit, Default: defaultLimit,
		Doc: "maximum number of entries"}
	pageCursor = Param{Name: "cursor", In: InQuery, Kind: Text, Max: maxCursor, Doc: "`next` of the previous page; empty for the first page"}
	forAll     = Param{Name: "all_tenants", In: InQuery, Kind: Boolean, Grant: OperateAll, Doc: "all tenants instead of the caller's"}
	ofFlow     = Param{Name: "workflow", In: InQuery, Kind: Text, Doc: "a workflow"}
	ofKey      = Param{Name: "business_key", In: InQuery, Kind: Text, Needs: "workflow", Doc: "the business key of an instance"}
	ofOne      = Param{Name: "instance", In: InQuery, Kind: UUID, Doc: "an instance"}
	ofType     = Param{Name: "type", In: InQuery, Kind: Text, Doc: "a type of events"}
	ofVersion  = Param{Name: "definition", In: InQuery, Kind: Integer, Min: 1, Max: math.MaxInt32,
		Doc: "instances on this version of a definition"}
	ofStates   = Param{Name: "state", In: InQuery, Kind: Text, Many: maxStates, Doc: "a state; repeat it for several states (100 at most)"}
	ofState    = Param{Name: "state", In: InQuery, Kind: Text, Doc: "the state after the transition"}
	ofStuck    = Param{Name: "stuck", In: InQuery, Kind: Boolean, Doc: "`true`: with a command that waits for an operator; `false`: without"}
	ofOpen     = Param{Name: "open", In: InQuery, Kind: Boolean, Doc: "`true`: not in a final state; `false`: in a final state"}
	attributes = Param{Name: "attr.", In: InQuery, Kind: Text,
		Doc: "a declared attribute; an attribute that the named workflow does not declare is rejected"}
	attributeRanges = Param{Name: attributes.Name, In: InQuery, Kind: Text, Suffixes: []string{suffixFrom, suffixBefore, suffixPrefix},
		Doc: attributes.Doc + ". `attr.NAME.from`, `attr.NAME.before` and `attr.NAME.prefix` select a [range](protocol-reading.md#lists)"}
	inOrder = Param{Name: "order", In: InQuery, Kind: Text, Values: []string{"created", "updated"}, Default: "created",
		Doc: "`created`: the oldest first; `updated`: the last updated first"}
	aGrant = Param{Name: "can", In: InQuery, Kind: Text, Max: auth.MaxGrant,
		Doc: "check this grant; the answer has the reason if it is missing"}

	aVersion = Param{Name: "version", In: InQuery, Kind: Integer, Min: 1, Max: math.MaxInt32,
		Doc: "version of the definition; defaults to the newest"}
	aFormat = Param{Name: "format", In: InQuery, Kind: Text, Values: []string{"svg", "mermaid", "dot"},
		Doc: "defaults to the `Accept` header"}
	asOf = []Param{
		{Name: "version", In: InQuery, Kind: Integer, Min: 1, Max: maxPosition, Doc: "the instance as it was at this version"},
		{Name: "at", In: InQuery, Kind: Time, Doc: "the instance as it was at this time"},
	}
	afterPosition = Param{Name: "after", In: InQuery, Kind: Position, Default: "start", Doc: "a position of the log, `start` or `now`"}
	afterVersion  = Param{Name: "after", In: InQuery, Kind: Integer, Max: maxPosition, Default: "0", Doc: "entries with a later version"}
	ofConsumer    = Param{Name: "consumer", In: InQuery, Kind: Text, Doc: "the consumer of the messages"}
	ofMessage     = Param{Name: "message", In: InQuery, Kind: Text, Needs: "consumer", Doc: "the sender's id of a message"}
	messageStatus = Param{Name: "status", In: InQuery, Kind: Text, Default: string(inspect.MessageWaiting),
		Values: []string{string(inspect.MessageWaiting), string(inspect.MessageRetried), string(inspect.MessageDiscarded)},
		Doc:    "status of the messages"}
	ofActor = Param{Name: "actor", In: InQuery, Kind: Text, Doc: "the sender of the command"}
	ofProof = Param{Name: "proof", In: InQuery, Kind: Text, Max: transitions.MaxProof,
		Doc: "a part of the proof of the sender's identity, such as the id of an API key; includes tickets that were requested with it"}
	commandKind = Param{Name: "status", In: InQuery, Kind: Text, Values: CommandKinds,
		Doc: "a status, or another of these counts; defaults to all"}
	deadStatus = Param{Name: "status", In: InQuery, Kind: Text, Default: string(inspect.DeadWaiting),
		Values: []string{string(inspect.DeadWaiting), string(inspect.DeadQueued), string(inspect.DeadRedriven), string(inspect.DeadSkipped)},
		Doc:    "state of the dead letters"}
	aMessage = []Param{
		{Name: "consumer", In: InQuery, Kind: Text, Required: true, Doc: "the consumer of the message"},
		{Name: "message", In: InQuery, Kind: Text, Required: true, Doc: "the sender's id of the message"},
		{Name: "hash", In: InQuery, Kind: Text, Required: true, Doc: "SHA-256 of its body, from the list"},
	}
	between = []Param{
		{Name: "created_after", In: InQuery, Kind: Time, Doc: "created at this time or later"},
		{Name: "created_before", In: InQuery, Kind: Time, Doc: "created earlier than this time"},
		{Name: "updated_after", In: InQuery, Kind: Time, Doc: "updated at this time or later"},
		{Name: "updated_before", In: InQuery, Kind: Time, Doc: "updated earlier than this time"},
	}
)

// Headers that mean something to several routes.
var (
	itsKey = []Param{
		{Name: headerKey, In: InHeader, Kind: Key, Required: true,
			Doc: "1 to 255 bytes, opaque. A quoted string (RFC 8941) and the same text bare are one key; a key with a comma has to be quoted"},
		{Name: headerScope, In: InHeader, Kind: Scope, Doc: "the scope in which the key is unique. Defaults to `{workflow}:{instance}`, and to " +
			"`{workflow}:{transition}` for a creation, so that one key on two instances is two commands. " +
			"See [scopes](protocol-commands.md#scopes)"},
	}
	ofOneCommand = append(itsKey[:2:2],
		atVersion,
		Param{Name: headerReason, In: InHeader, Kind: Text, Doc: "the reason, for the audit row and the events: at most 4096 bytes " +
			"of UTF-8, plain or as a Display String (RFC 9651) such as `%\"two%0alines\"`, " +
			"see [reasons](protocol-commands.md#reasons)"},
		Param{Name: headerNotBefore, In: InHeader, Kind: Time,
			Doc: "decide the command at this time, such as `2030-01-31T12:00:00Z`; at most ten years ahead"},
		Param{Name: headerHappenedAt, In: InHeader, Kind: Time,
			Doc: "import a command that happened at this time, such as `2020-01-31T12:00:00Z`; needs the grant `import`, see " +
				"[imports](protocol-commands.md#imports)"},
		Param{Name: headerReplayFor, In: InHeader, Kind: Integer, Min: 1, Max: maxSeconds,
			Doc: "replay the answer for this many seconds, see [keys](protocol-in-flight.md#how-long-a-key-is-good-for)"},
		Param{Name: headerTombstoneFor, In: InHeader, Kind: Text,
			Doc: "then reject the key for this many seconds, such as `86400`, or `forever`"},
		preferEnd,
	)
	atVersion = Param{Name: headerIfMatch, In: InHeader, Kind: Text,
		Doc: "the `ETag` of the instance, or its version such as `\"3\"`; otherwise 412"}
	preferEnd = Param{Name: headerPrefer, In: InHeader, Kind: Text,
		Doc: "`wait=N`: if the command takes time, wait up to N seconds (at most 25, or `--max-wait`) " +
			"for its completion; `respond-async` (the default): do not wait"}
	preferWait = Param{Name: headerPrefer, In: InHeader, Kind: Text,
		Doc: "`wait=N`: wait up to N seconds (25 at most, or `--max-wait`) for a change"}
	noneMatch   = Param{Name: headerNoneMatch, In: InHeader, Kind: Text, Doc: "the known `ETag`; 304 if it is unchanged"}
	lastEventID = Param{Name: headerLastEventID, In: InHeader, Kind: Text, Doc: "of an event stream: continue after this id"}
)

// migrationKey is optional: a migration that is under way is not begun once more in any case.
var migrationKey = Param{Name: headerKey, In: InHeader, Kind: Key,
	Doc: "identifies the migration, so that a repeated request does not start another: 1 to 255 bytes, opaque"}

// CommandKinds are what a list of commands in flight can be asked for.
var CommandKinds = each(inspect.CommandKinds, func(k *inspect.CommandKind) string { return string(*k) })

// naming returns the headers by which a caller names itself if it is trusted. With the right to act as others, the actor may be named with
// a credential too.
func naming(actsAs bool) []Param {
	actor := Param{Name: headerActor, In: InHeader, Kind: Text, Default: transitions.DefaultActor, Believed: true,
		Doc: "the actor, for the audit row and separation of duties"}
	if actsAs {
		actor.Default, actor.Believed = "", false
		actor.Doc += "; with a credential it needs the grant `" + string(ActAs) + "`"
	}
	return []Param{
		{Name: headerTenant, In: InHeader, Kind: Text, Max: transitions.MaxTenant, Default: transitions.DefaultTenant, Believed: true,
			Doc: "every instance, key and log belongs to one tenant"},
		actor,
		{Name: headerRoles, In: InHeader, Kind: Text, Default: transitions.AnyRole, Believed: true, Doc: "separated by commas, `*` is " +
			"every role; `operator` and `operator:all` also give the grants `operate` and `operate:all`. Every caller has the other grants"},
	}
}

// Headers of answers.
var (
	replayed = Header{headerReplayed, "`true` on a replay"}
	location = Header{headerLocation, "the address of the created resource, or with 202 of the command's status"}
	etag     = Header{headerETag, "begins with the version of the instance, or with the revision of a command in flight"}
	encoded  = Header{headerEncoding, "`gzip`, if the request accepts it"}
	position = Header{headerPosition, "the position of the command's transition in the log"}
	// retryLater is that of a 202; a problem that may pass has it everywhere.
	retryLater = Header{headerRetryAfter, "seconds until the next poll, or until the same request may succeed"}
	applied    = Header{headerApplied, "the applied preferences"}
	dry        = Header{headerDryRun, "`true` for a dry run"}
	setCookie  = Header{"Set-Cookie", "the ticket as the cookie `pawl_ticket`, if requested"}
	// ofRates are there where there is a limit.
	ofRates = []Header{{headerRatePolicy, "quota (`q`) and window in seconds (`w`) of the limits of the `\"tenant\"` and the " +
		"`\"credential\"`; the latter applies to all credentials of the actor"},
		{headerRateLimit, "remaining quota (`r`), and seconds until one more command is available (`t`)"}}
	ofReceipts = []Header{replayed, location, etag, position, retryLater}
)

// params joins parameters and lists of them.
func params(all ...any) (list []Param) {
	for _, one := range all {
		switch p := one.(type) {
		case Param:
			list = append(list, p)
		case []Param:
			list = append(list, p...)
		}
	}
	return list
}

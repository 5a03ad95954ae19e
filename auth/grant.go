package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Right is a kind of permitted operation.
type Right string

// Rights.
const (
	Read       Right = "read"        // read instances, the log, commands
	Stream     Right = "stream"      // receive streams of changes
	Submit     Right = "submit"      // submit and cancel commands
	ActAs      Right = "act-as"      // submit commands for another actor
	Import     Right = "import"      // submit commands with a time in the past
	Operate    Right = "operate"     // operate the own tenant
	OperateAll Right = "operate:all" // operate all tenants
	Keys       Right = "keys"        // create, list, rotate and revoke API keys
)

// Rights lists all rights.
var Rights = []Right{Read, Stream, Submit, ActAs, Import, Operate, OperateAll, Keys}

// ofTransition reports whether the right can be restricted to a transition.
func (r Right) ofTransition() bool { return r == Submit || r == ActAs || r == Import }

// Target is the subject of a request, or the restriction of a grant. The zero value means everything of the tenant.
type Target struct {
	Workflow    string
	Transition  string
	BusinessKey string // of an instance of Workflow
	Instance    uuid.UUID
}

// instanceOf returns the target's instance, by id or business key, or zero.
func (t *Target) instanceOf(tenant string) uuid.UUID {
	if t.Instance == uuid.Nil && t.Workflow != "" && t.BusinessKey != "" {
		return transitions.InstanceID(tenant, t.Workflow, t.BusinessKey)
	}
	return t.Instance
}

// covers reports whether t includes other.
func (t *Target) covers(tenant string, other *Target) bool {
	if t.Transition != "" && t.Transition != other.Transition {
		return false
	}
	if instance := t.instanceOf(tenant); instance != uuid.Nil {
		return instance == other.instanceOf(tenant) // an instance has one workflow
	}
	return t.Workflow == "" || t.Workflow == other.Workflow
}

// Grant is a right to a target. Its text is the right, optionally followed by ":" and the target:
//
//	read                           everything of the tenant
//	read:order                     the instances of a workflow
//	read:order#A-17                the instance with this business key
//	read:@0197f6a0-…               the instance with this id
//	submit:order/pay               a transition of a workflow
//	submit:order#A-17/pay          of the instance with this business key
//	submit:@0197f6a0-…/pay         of the instance with this id
//
// Characters of a business key other than letters, digits and "-._~" are percent-encoded, so grants contain no spaces and lists of grants
// are separated by spaces. Only submit, act-as and import can be restricted to a transition. operate:all and keys cannot be restricted, and
// operate cannot be restricted to a workflow named "all".
type Grant struct {
	Right Right
	Target
}

// MaxGrant is the maximum length of a grant's text in bytes.
const MaxGrant = 1024

// ParseGrant parses a grant. It only accepts the canonical text that String returns.
func ParseGrant(text string) (Grant, error) {
	var g Grant
	if len(text) > MaxGrant {
		return g, fmt.Errorf("the grant is longer than %d bytes", MaxGrant)
	}
	if slices.Contains(Rights, Right(text)) {
		return Grant{Right: Right(text)}, nil
	}
	right, target, _ := strings.Cut(text, ":")
	if !slices.Contains(Rights, Right(right)) {
		return g, fmt.Errorf("the grant %q does not begin with a right", shown(text))
	}
	if g.Right = Right(right); g.Right == Keys {
		return Grant{}, fmt.Errorf("the grant %q is narrowed: a key is by what its maker may do", shown(text))
	}
	if err := g.parse(target); err != nil {
		return Grant{}, fmt.Errorf("the grant %q %w", shown(text), err)
	}
	if g.Transition != "" && !g.Right.ofTransition() {
		return Grant{}, fmt.Errorf("the grant %q names a transition, which only %q, %q and %q can", shown(text), Submit, ActAs, Import)
	}
	if g.String() != text {
		return Grant{}, fmt.Errorf("the grant %q is not written as %q", shown(text), g)
	}
	return g, nil
}

func shown(text string) string { return strings.ToValidUTF8(text[:min(len(text), 128)], "?") }

// parse parses WORKFLOW[#KEY][/TRANSITION] or @INSTANCE[/TRANSITION].
func (t *Target) parse(text string) (err error) {
	text, transition, narrowed := strings.Cut(text, "/")
	if narrowed {
		if !isName(transition) {
			return fmt.Errorf("lacks a transition after \"/\"")
		}
		t.Transition = transition
	}
	if id, is := strings.CutPrefix(text, "@"); is {
		if t.Instance, err = uuid.Parse(id); err != nil || t.Instance == uuid.Nil {
			return fmt.Errorf("lacks an instance id after \"@\"")
		}
		return nil
	}
	name, key, keyed := strings.Cut(text, "#")
	if !isName(name) {
		return fmt.Errorf("lacks a workflow after \":\"")
	}
	t.Workflow = name
	if !keyed {
		return nil
	}
	t.BusinessKey, err = unescape(key)
	if err != nil || t.BusinessKey == "" || transitions.TextProblem(t.BusinessKey, workflow.MaxBusinessKey) != "" {
		return fmt.Errorf("lacks a business key after \"#\"")
	}
	return nil
}

// isName reports whether s is a valid name of a workflow or a transition.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// String returns the canonical text of the grant.
func (g Grant) String() string {
	var b strings.Builder
	b.WriteString(string(g.Right))
	switch {
	case g.Instance != uuid.Nil:
		b.WriteString(":@" + g.Instance.String())
	case g.Workflow != "":
		b.WriteString(":" + g.Workflow)
		if g.BusinessKey != "" {
			b.WriteString("#" + escape(g.BusinessKey))
		}
	}
	if g.Transition != "" {
		b.WriteString("/" + g.Transition)
	}
	return b.String()
}

// Grants are the permissions of a principal.
type Grants []Grant

// ParseGrants parses grants separated by spaces.
func ParseGrants(text string) (Grants, error) {
	var all Grants
	for _, one := range strings.Fields(text) {
		g, err := ParseGrant(one)
		if err != nil {
			return nil, err
		}
		all = all.with(g)
	}
	return all, nil
}

// All returns all rights without restrictions, including those to other tenants.
func All() (all Grants) {
	for _, r := range Rights {
		all = append(all, Grant{Right: r})
	}
	return all
}

// Cover reports whether these grants include a requested grant in a tenant. An instance named by its id is only covered by a grant for its
// workflow if the requested grant names that too; see [Principal.AsksForWorkflow].
func (gs Grants) Cover(tenant string, asked Grant) bool {
	return slices.ContainsFunc(gs, func(g Grant) bool { return g.has(asked.Right) && g.covers(tenant, &asked.Target) })
}

func (gs Grants) with(g Grant) Grants {
	if slices.Contains(gs, g) {
		return gs
	}
	return append(gs, g)
}

// String returns the text for ParseGrants.
func (gs Grants) String() string {
	texts := make([]string, len(gs))
	for i, g := range gs {
		texts[i] = g.String()
	}
	return strings.Join(texts, " ")
}

// escape percent-encodes all but unreserved characters (RFC 3986, section 2.3).
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

var errEscape = errors.New("is not escaped")

// unescape reverses escape.
func unescape(s string) (string, error) {
	plain, err := url.PathUnescape(s)
	if err != nil || escape(plain) != s {
		return "", errEscape
	}
	return plain, nil
}

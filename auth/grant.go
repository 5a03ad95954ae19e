package auth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/pawlhq/pawl/transitions"
	"github.com/pawlhq/pawl/workflow"
)

// Right is a kind of things that may be done.
type Right string

// The rights.
const (
	Read       Right = "read"        // instances, the log, commands
	Stream     Right = "stream"      // to stay connected, and be told what is new
	Submit     Right = "submit"      // commands, and to stop one
	ActAs      Right = "act-as"      // to name another actor of what one submits
	Import     Right = "import"      // to say when what one submits has happened
	Operate    Right = "operate"     // what is for operators, of the own tenant
	OperateAll Right = "operate:all" // what concerns every tenant
	Keys       Right = "keys"        // to make, see, rotate and revoke API keys
)

// Rights are all of them.
var Rights = []Right{Read, Stream, Submit, ActAs, Import, Operate, OperateAll, Keys}

// ofTransition reports whether the right can be narrowed to a transition.
func (r Right) ofTransition() bool { return r == Submit || r == ActAs || r == Import }

// Target is what a request is about, and what a grant is narrowed to. The zero value is
// everything of the tenant.
type Target struct {
	Workflow    string
	Transition  string
	BusinessKey string // of an instance of Workflow
	Instance    uuid.UUID
}

// instanceOf is the instance that the target names, by its id or its business key; zero for none.
func (t *Target) instanceOf(tenant string) uuid.UUID {
	if t.Instance == uuid.Nil && t.Workflow != "" && t.BusinessKey != "" {
		return transitions.InstanceID(tenant, t.Workflow, t.BusinessKey)
	}
	return t.Instance
}

// covers reports whether all that other names is in t.
func (t *Target) covers(tenant string, other *Target) bool {
	if t.Transition != "" && t.Transition != other.Transition {
		return false
	}
	if instance := t.instanceOf(tenant); instance != uuid.Nil {
		return instance == other.instanceOf(tenant) // which has one workflow
	}
	return t.Workflow == "" || t.Workflow == other.Workflow
}

// Grant is a right to a target. Its text is the right alone, or the right, ":" and the target:
//
//	read                           everything of the tenant
//	read:order                     the instances of a workflow
//	read:order#A-17                the instance with this business key
//	read:@0197f6a0-…               the instance with this id
//	submit:order/pay               a transition of a workflow
//	submit:order#A-17/pay          of the instance with this business key
//	submit:@0197f6a0-…/pay         of the instance with this id
//
// What is neither a letter, a digit nor one of "-._~" is in a business key as in a URL: "%20" for a
// blank. So a grant has no blanks, and many of them are separated by those. Only submit, act-as and import
// are narrowed to a transition, operate:all and keys to nothing, and operate not to a workflow that is named "all".
type Grant struct {
	Right Right
	Target
}

// MaxGrant is the longest text of a grant in bytes.
const MaxGrant = 1024

// ParseGrant reads a grant. It takes the one text of each grant that String writes, and no other.
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
		return g, fmt.Errorf("the grant %q begins with none of the rights", shown(text))
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

// parse reads WORKFLOW[#KEY][/TRANSITION] or @INSTANCE[/TRANSITION].
func (t *Target) parse(text string) (err error) {
	text, transition, narrowed := strings.Cut(text, "/")
	if narrowed {
		if !isName(transition) {
			return fmt.Errorf("has no name of a transition after \"/\"")
		}
		t.Transition = transition
	}
	if id, is := strings.CutPrefix(text, "@"); is {
		if t.Instance, err = uuid.Parse(id); err != nil || t.Instance == uuid.Nil {
			return fmt.Errorf("has no id of an instance after \"@\"")
		}
		return nil
	}
	name, key, keyed := strings.Cut(text, "#")
	if !isName(name) {
		return fmt.Errorf("has no name of a workflow after \":\"")
	}
	t.Workflow = name
	if !keyed {
		return nil
	}
	t.BusinessKey, err = unescape(key)
	if err != nil || t.BusinessKey == "" || transitions.TextProblem(t.BusinessKey, workflow.MaxBusinessKey) != "" {
		return fmt.Errorf("has no business key after \"#\"")
	}
	return nil
}

// isName reports whether a workflow or a transition can have the name.
func isName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, notOfName)
}

func notOfName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// String is the text that ParseGrant reads.
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

// Grants are what somebody may do.
type Grants []Grant

// ParseGrants reads grants that are separated by blanks.
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

// All are the rights to everything, also of other tenants.
func All() (all Grants) {
	for _, r := range Rights {
		all = append(all, Grant{Right: r})
	}
	return all
}

// Cover reports whether whoever has these has the asked one too, in a tenant. An instance that is named
// by its id is covered by a grant for its workflow only where the asked one names that too; see
// [Principal.AsksForWorkflow].
func (gs Grants) Cover(tenant string, asked Grant) bool {
	return slices.ContainsFunc(gs, func(g Grant) bool { return g.has(asked.Right) && g.covers(tenant, &asked.Target) })
}

func (gs Grants) with(g Grant) Grants {
	if slices.Contains(gs, g) {
		return gs
	}
	return append(gs, g)
}

// String is the text that ParseGrants reads.
func (gs Grants) String() string {
	texts := make([]string, len(gs))
	for i, g := range gs {
		texts[i] = g.String()
	}
	return strings.Join(texts, " ")
}

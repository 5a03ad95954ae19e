// Package prose keeps the language of comments, messages, test names and documentation plain. Its test counts the texts
// with phrases that readers of Go code and of technical documentation do not expect, and fails if the share of such texts
// in one kind of text exceeds its limit. The limits only go down.
package prose

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limits are the shares of flagged texts that each kind may have.
var limits = map[string]float64{
	"comments":      0.02,
	"messages":      0.005,
	"documentation": 0.02,
	"test names":    0,
}

// A phrase is flagged where pattern matches and except does not match the rest of the text from there on.
type phrase struct {
	name            string
	pattern, except *regexp.Regexp
}

var phrases = []phrase{
	{"who as a free relative", regexp.MustCompile(`(?:^|[.;:,(] )[Ww]ho [a-z]+ |\b(?:for|of|to|by|from|with|than|and|or) who(?:ever)?\b|[Ww]hoever`),
		regexp.MustCompile(`^\W*[Ww]ho (?:is called|are you)`)},
	{"what as a free relative", regexp.MustCompile(`(?:^|[.;:] )What [a-z]+ `), regexp.MustCompile(`^\W*What (?:is|are|if) `)},
	{"nobody, somebody, everybody", regexp.MustCompile(`\b(?:[Nn]o|[Ss]ome|[Ee]very|[Aa]ny)body\b`), nil},
	{"he, him, his", regexp.MustCompile(`\b(?:[Hh]e|[Hh]im|[Hh]is)\b`), nil},
	{"how or where it stands", regexp.MustCompile(`\b(?:how|where) .{1,30} stands?\b`), nil},
	{"is none, is no", regexp.MustCompile(`\b(?:is|are|was|were) (?:none|no )`), regexp.MustCompile(`^\w+ no (?:longer|more|way|need)`)},
	{"but for, and else, in the place of, beside", regexp.MustCompile(`\bbut for\b|\band else\b|\bin the place of\b|\bbeside\b`), nil},
	{"also where, also when, also if", regexp.MustCompile(`\balso (?:where|when|if)\b`), nil},
	{"for good, for ever", regexp.MustCompile(`\bfor (?:good|ever)\b`), nil},
	{"give back, go on", regexp.MustCompile(`\b(?:giv(?:e|es|en) (?:back|up)|gave (?:back|up)|goes on|go on|went on)\b`), nil},
	{"of which first", regexp.MustCompile(`(?:^|[.;] )(?:Of|To|In|By) (?:which|what|whom)\b`), nil},
}

// flagged returns the name of the first phrase in text, or "".
func flagged(text string) string {
	for _, p := range phrases {
		for _, at := range p.pattern.FindAllStringIndex(text, -1) {
			if p.except == nil || !p.except.MatchString(text[at[0]:]) {
				return p.name
			}
		}
	}
	return ""
}

var (
	comment   = regexp.MustCompile(`^\s*(?://|--)\s?`)
	directive = regexp.MustCompile(`^\s*//(?:go:|nolint)`)
	tail      = regexp.MustCompile(`\s//\s(.*)$`)
	testFunc  = regexp.MustCompile(`^func ((?:Test|Fuzz|Example|Benchmark)\w+)`)
	literal   = regexp.MustCompile(`"((?:[^"\\]|\\.){25,})"`)
	statement = regexp.MustCompile(`SELECT|UPDATE|INSERT`)
	oddName   = regexp.MustCompile(`(?:^|[^a-z])(?:What|Who|Whose|Nobody|Somebody|Nothing|Everybody|Beside|Else)(?:[^a-z]|$)`)
)

// texts returns the texts of a file by their kind.
func texts(name, content string) map[string][]string {
	found := map[string][]string{}
	add := func(kind, text string, shortest int) {
		if len(text) >= shortest {
			found[kind] = append(found[kind], text)
		}
	}
	if strings.HasSuffix(name, ".md") {
		for paragraph := range strings.SplitSeq(content, "\n\n") {
			if !strings.HasPrefix(paragraph, "```") && !strings.HasPrefix(paragraph, "|") {
				add("documentation", strings.ReplaceAll(paragraph, "\n", " "), 60)
			}
		}
		return found
	}
	var block []string
	for line := range strings.SplitSeq(content+"\n", "\n") {
		if comment.MatchString(line) && !directive.MatchString(line) {
			block = append(block, comment.ReplaceAllString(line, ""))
			continue
		}
		add("comments", strings.Join(block, " "), 60)
		block = nil
		if m := tail.FindStringSubmatch(line); m != nil {
			add("comments", m[1], 60)
		}
		if strings.HasSuffix(name, "_test.go") {
			if m := testFunc.FindStringSubmatch(line); m != nil {
				add("test names", m[1], 0)
			}
			continue
		}
		for _, m := range literal.FindAllStringSubmatch(line, -1) {
			if strings.Count(m[1], " ") > 3 && !statement.MatchString(m[1]) {
				add("messages", m[1], 25)
			}
		}
	}
	return found
}

func TestTextsArePlain(t *testing.T) {
	list, err := exec.Command("git", "-C", "../../..", "ls-files", "*.go", "*.sql", "*.md").Output()
	if err != nil {
		t.Skipf("git does not list the files: %v", err)
	}
	total, hits := map[string]int{}, map[string][]string{}
	for name := range strings.FieldsSeq(string(list)) {
		if strings.Contains(name, "testdata/") || strings.Contains(name, "testkit/prose/") {
			continue
		}
		content, err := os.ReadFile("../../../" + name)
		require.NoError(t, err)
		for kind, all := range texts(name, string(content)) {
			total[kind] += len(all)
			for _, text := range all {
				why := flagged(text)
				if kind == "test names" && (len(text) > 45 || oddName.MatchString(text[4:])) {
					why = "long or odd name"
				}
				if why != "" {
					hits[kind] = append(hits[kind], name+": "+why+": "+text)
				}
			}
		}
	}
	for kind, limit := range limits {
		require.NotZero(t, total[kind], kind)
		share := float64(len(hits[kind])) / float64(total[kind])
		t.Logf("%s: %d of %d, %.1f %%", kind, len(hits[kind]), total[kind], 100*share)
		slices.Sort(hits[kind])
		assert.LessOrEqualf(t, share, limit, "%s:\n%s", kind, strings.Join(hits[kind], "\n"))
	}
}

func TestFlagged(t *testing.T) {
	for text, want := range map[string]string{
		"Who waits for it is told.":                 "who as a free relative",
		"Who is called first decides.":              "",
		"What was sent is kept.":                    "what as a free relative",
		"Nobody reads it.":                          "nobody, somebody, everybody",
		"There is no need for it.":                  "",
		"The answer is none.":                       "is none, is no",
		"It is retried also when the server fails.": "also where, also when, also if",
		"Submit executes a command.":                "",
	} {
		assert.Equal(t, want, flagged(text), text)
	}
}

package workflow

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// declaredCodes reads the constants of type Code from the source.
func declaredCodes(t *testing.T) map[string]Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
			return true
		}
		for i, name := range spec.Names {
			value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes[name.Name] = Code(value)
		}
		return true
	})
	return codes
}

func TestEveryCodeIsInTheTableOnce(t *testing.T) {
	declared := declaredCodes(t)
	if len(declared) < 30 {
		t.Fatalf("found only %d codes in the source", len(declared))
	}
	rows := map[Code]int{}
	for _, c := range Codes {
		rows[c.Code]++
	}
	names := map[Code]string{}
	for name, code := range declared {
		if rows[code] != 1 {
			t.Errorf("%s has %d rows", name, rows[code])
		}
		if other, taken := names[code]; taken {
			t.Errorf("%s and %s are both %q", name, other, code)
		}
		names[code] = name
		if code.Info().Code != code {
			t.Errorf("%s.Info() is about %s", name, code.Info().Code)
		}
		delete(rows, code)
	}
	for code := range rows {
		t.Errorf("the table has %q, which is not declared", code)
	}
}

func TestTheTableOfCodesIsSound(t *testing.T) {
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	sqlState := regexp.MustCompile(`^(P4[0-9]{3})?$`)
	last := 0
	for _, c := range Codes {
		if !form.MatchString(string(c.Code)) {
			t.Errorf("%q is not in lower case", c.Code)
		}
		if http.StatusText(c.Status) == "" || c.Status < 400 {
			t.Errorf("%s: status %d", c.Code, c.Status)
		}
		if c.Status < last {
			t.Errorf("%s: status %d stands after %d", c.Code, c.Status, last)
		}
		last = c.Status
		if !sqlState.MatchString(c.SQLState) {
			t.Errorf("%s: SQLSTATE %q", c.Code, c.SQLState)
		}
		if c.Final && (c.Status >= 500 || c.Retry) {
			t.Errorf("%s is final, but has status %d and may be retried: %t", c.Code, c.Status, c.Retry)
		}
		if c.Status >= 500 && !c.Retry {
			t.Errorf("%s: status %d, but the same request cannot succeed later", c.Code, c.Status)
		}
		if c.Meaning == "" {
			t.Errorf("%s has no meaning", c.Code)
		}
	}
}

func TestUnknownCodesAreDefects(t *testing.T) {
	if got := Code("mine").Info().Code; got != Internal {
		t.Errorf("got %s", got)
	}
}

func TestErrorIsItsCode(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	err := fmt.Errorf("submit: %w", &Error{Code: Unavailable, Message: "the database cannot be reached", Cause: cause})
	if CodeOf(err) != Unavailable || CodeOf(nil) != "" || CodeOf(cause) != Internal {
		t.Error("CodeOf")
	}
	if !errors.Is(err, &Error{Code: Unavailable}) || errors.Is(err, &Error{Code: Locked}) {
		t.Error("Is asks for the code")
	}
	if errors.Is(err, &Error{Code: Unavailable, Message: "another"}) {
		t.Error("Is with a message is about that very error")
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	want := "database_unavailable: the database cannot be reached: dial tcp 10.0.0.1: refused"
	if got := errors.Unwrap(err).Error(); got != want {
		t.Errorf("got %s", got)
	}
	if got := Errorf(KeyReused, "key %q", "k").Error(); got != `idempotency_key_reused: key "k"` {
		t.Errorf("got %s", got)
	}
}

func TestAnErrorSaysWhatIsWrongWhere(t *testing.T) {
	err := &Error{Code: InvalidPayload, Message: "the payload is not valid",
		Fields: []FieldError{{"/customer", "must be a string"}, {"", "and 7 more"}}}
	if want := "invalid_payload: the payload is not valid; /customer: must be a string; and 7 more"; err.Error() != want {
		t.Errorf("got %s", err)
	}
}

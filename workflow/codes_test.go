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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declaredCodes reads the constants of type Code from the source.
func declaredCodes(t *testing.T) map[string]Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	require.NoError(t, err)
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
			require.NoError(t, err)
			codes[name.Name] = Code(value)
		}
		return true
	})
	return codes
}

func TestEveryCodeIsInTheTableOnce(t *testing.T) {
	declared := declaredCodes(t)
	require.Truef(t, len(declared) >= 30, "found only %d codes in the source", len(declared))
	rows := map[Code]int{}
	for _, c := range Codes {
		rows[c.Code]++
	}
	names := map[Code]string{}
	for name, code := range declared {
		assert.Equalf(t, 1, rows[code], "%s has rows", name)
		other, taken := names[code]
		assert.Falsef(t, taken, "%s and %s are both %q", name, other, code)
		names[code] = name
		assert.Equalf(t, code, code.Info().Code, "%s.Info is about", name)
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
		assert.Truef(t, form.MatchString(string(c.Code)), "%q is not in lower case", c.Code)
		assert.Truef(t, http.StatusText(c.Status) != "" && c.Status >= 400, "%s: status %d", c.Code, c.Status)
		assert.Truef(t, c.Status >= last, "%s: status %d stands after %d", c.Code, c.Status, last)
		last = c.Status
		assert.Truef(t, sqlState.MatchString(c.SQLState), "%s: SQLSTATE %q", c.Code, c.SQLState)
		assert.Falsef(t, c.Final && (c.Status >= 500 || c.Retry),
			"%s is final, but has status %d and may be retried: %t", c.Code, c.Status, c.Retry)
		assert.Falsef(t, c.Status >= 500 && !c.Retry, "%s: status %d, but the same request cannot succeed later", c.Code, c.Status)
		assert.NotEqualf(t, "", c.Meaning, "%s has no meaning", c.Code)
	}
}

func TestErrorIsItsCode(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.1: refused")
	err := fmt.Errorf("submit: %w", &Error{Code: Unavailable, Message: "the database cannot be reached", Cause: cause})
	assert.True(t, CodeOf(err) == Unavailable && CodeOf(nil) == "" && CodeOf(cause) == Internal, "CodeOf")
	assert.True(t, errors.Is(err, &Error{Code: Unavailable}) && !errors.Is(err, &Error{Code: Locked}), "Is asks for the code")
	assert.False(t, errors.Is(err, &Error{Code: Unavailable, Message: "another"}), "Is with a message is about that very error")
	assert.ErrorIs(t, err, cause, "the cause is lost")
	want := "database_unavailable: the database cannot be reached: dial tcp 10.0.0.1: refused"
	assert.Equal(t, want, errors.Unwrap(err).Error())
	assert.Equal(t, `idempotency_key_reused: key "k"`, Errorf(KeyReused, "key %q", "k").Error())
}

func TestAnErrorSaysWhatIsWrongWhere(t *testing.T) {
	err := &Error{Code: InvalidPayload, Message: "the payload is not valid",
		Fields: []FieldError{{"/customer", "must be a string"}, {"", "and 7 more"}}}
	assert.Equalf(t, "invalid_payload: the payload is not valid; /customer: must be a string; and 7 more", err.Error(), "got %s", err)
}

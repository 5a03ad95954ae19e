package decide

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/workflow"
)

// MaxDepth bounds the nesting of payloads, because PostgreSQL parses JSON recursively.
const MaxDepth = 64

// Canonical returns a copy of the payload in the canonical form of RFC 8785. Payloads with the same meaning have the same bytes.
//
// It returns InvalidPayload for anything but a JSON object, and for values that cannot be stored or would make different payloads equal:
// duplicate names, invalid UTF-8, a NUL in a string, a number that a double does not represent exactly (see checkNumber; all integers up to
// 2^53 are exact), nesting deeper than MaxDepth. The result is its own canonical form.
func Canonical(payload []byte) ([]byte, error) {
	if err := scan(payload); err != nil {
		return nil, err
	}
	value := jsontext.Value(payload).Clone()
	if len(value) == 0 {
		return []byte("{}"), nil
	}
	if err := value.Canonicalize(); err != nil {
		return nil, syntaxError(err)
	}
	if value[0] != '{' {
		return nil, badPayload("", "must be a JSON object")
	}
	return value, nil
}

// scan checks what the canonicalizer does not: NULs, depth and numbers.
func scan(payload []byte) error {
	depth := 0
	for i := 0; i < len(payload); i++ {
		switch c := payload[i]; {
		case c == '"':
			end, nul := scanString(payload, i+1)
			if nul {
				return badAt(payload, i, "a string contains a NUL (\\u0000), which cannot be stored")
			}
			i = end
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return badPayload("", "nests deeper than "+strconv.Itoa(MaxDepth)+" levels")
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(payload) && strings.IndexByte("0123456789+-.eE", payload[end]) >= 0 {
				end++
			}
			if complaint := checkNumber(string(payload[i:end])); complaint != "" {
				return badAt(payload, i, complaint)
			}
			i = end - 1
		}
	}
	return nil
}

// hasNUL reports whether a string in the JSON contains a NUL.
func hasNUL(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end, nul := scanString(raw, i+1)
		if nul {
			return true
		}
		i = end
	}
	return false
}

// scanString returns the index of the closing quote, or the last index.
func scanString(b []byte, i int) (end int, nul bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i, nul
		case '\\':
			if i+5 < len(b) && string(b[i+1:i+6]) == "u0000" {
				nul = true
			}
			i++
		}
	}
	return len(b) - 1, nul
}

func syntaxError(err error) error {
	e, ok := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case ok && errors.Is(err, jsontext.ErrDuplicateName):
		return badPayload(string(e.JSONPointer), "a field occurs twice")
	case ok && e.Err != nil && strings.HasPrefix(e.Err.Error(), "invalid surrogate pair"): // the text would quote what follows
		return badPayload(string(e.JSONPointer), "is not valid JSON: a string has half a surrogate pair (\\uD800 to \\uDFFF)")
	case ok && e.Err != nil:
		return badPayload(string(e.JSONPointer), "is not valid JSON: "+strings.TrimPrefix(e.Err.Error(), "jsontext: "))
	default:
		return badPayload("", "is not valid JSON")
	}
}

// badAt refuses the value at a byte offset of the payload, or its object if the offset is in a name. Invalid JSON before the offset is
// reported instead.
func badAt(payload []byte, offset int, message string) error {
	tokens := jsontext.NewDecoder(bytes.NewReader(payload))
	for tokens.InputOffset() <= int64(offset) {
		if _, err := tokens.ReadToken(); err != nil {
			return syntaxError(err)
		}
	}
	at := tokens.StackPointer()
	if kind, read := tokens.StackIndex(tokens.StackDepth()); kind == '{' && read%2 == 1 { // a name was the last
		at = at.Parent()
	}
	return badPayload(string(at), message)
}

func badPayload(pointer, message string) *workflow.Error {
	return &workflow.Error{Code: workflow.InvalidPayload, Message: "the payload is not valid",
		Fields: []workflow.FieldError{{Pointer: pointer, Message: message}}}
}

// checkNumber returns why a number cannot be kept, or "". The canonical form, the shortest with the same double, must have exactly the same
// value, as for 1.50 and 15e-1, but not 2^53+1. Text that is not a number passes: the canonicalizer reports it.
func checkNumber(s string) (complaint string) {
	if len(s) <= 15 && !strings.ContainsAny(s, "eE") {
		return "" // at most 15 digits: a double keeps them
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return outOfRange
	case err != nil:
		return ""
	}
	given, exponent := decimal(s)
	kept, keptExponent := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	switch {
	case given == kept && (exponent == keptExponent || given == ""):
		return ""
	case kept == "":
		return outOfRange
	default:
		return "a number has more digits than a double keeps; send it as a string"
	}
}

const outOfRange = "a number is out of the range of a double"

// decimal returns the value of a JSON number without its sign as 0.digits * 10^exponent, without zeros at the ends of digits. The exponent
// is unspecified beyond the range of a double.
func decimal(s string) (digits string, exponent int) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(s, "-")), "e")
	whole, rest, _ := strings.Cut(mantissa, ".")
	exponent, _ = strconv.Atoi(power) // nothing is 0; what is out of range is also far out of a double's
	digits = strings.TrimLeft(whole+rest, "0")
	exponent += len(whole) - (len(whole+rest) - len(digits))
	return strings.TrimRight(digits, "0"), exponent
}

package decide

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

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

// pointerAt returns the location of the value at a byte offset of the payload, or of the object if the offset is in a name. Its error is
// that of invalid JSON before the offset.
func pointerAt(payload []byte, offset int) (jsontext.Pointer, error) {
	tokens := jsontext.NewDecoder(bytes.NewReader(payload))
	for tokens.InputOffset() <= int64(offset) {
		if _, err := tokens.ReadToken(); err != nil {
			return "", syntaxError(err)
		}
	}
	at := tokens.StackPointer()
	if kind, read := tokens.StackIndex(tokens.StackDepth()); kind == '{' && read%2 == 1 { // a name was the last
		at = at.Parent()
	}
	return at, nil
}

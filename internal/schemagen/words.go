package schemagen

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

func textual(c check) (*jsonschema.Schema, error) {
	switch c.name {
	case "min", "max", "gt", "gte", "lt", "lte", "len":
		low, high, err := limits(c)
		return &jsonschema.Schema{MinLength: low, MaxLength: high}, err
	case "eq":
		return constant(c.param), nil
	case "ne":
		return not(constant(c.param)), nil
	case "oneof":
		return &jsonschema.Schema{Enum: texts(c.param)}, nil
	case "noneof":
		return not(&jsonschema.Schema{Enum: texts(c.param)}), nil
	case "startswith":
		return pattern("^" + regexp.QuoteMeta(c.param)), nil
	case "endswith":
		return pattern(regexp.QuoteMeta(c.param) + "$"), nil
	case "contains":
		return pattern(regexp.QuoteMeta(c.param)), nil
	case "datetime":
		switch c.param {
		case time.RFC3339:
			return &jsonschema.Schema{Format: "date-time"}, nil
		case time.DateOnly:
			return &jsonschema.Schema{Format: "date"}, nil
		}
		return nil, nil
	}
	if s, ok := spellings[c.name]; ok {
		return &jsonschema.Schema{Pattern: s.pattern, Format: s.format}, nil
	}
	return nil, nil
}

func numeric(t reflect.Type, c check) (*jsonschema.Schema, error) {
	switch c.name {
	case "oneof", "noneof":
		values := []any{}
		for _, v := range Choices(c.param) {
			n, err := strconv.ParseInt(v, 10, 64)
			if err == nil && strconv.FormatInt(n, 10) == v && !slices.Contains(values, any(n)) {
				values = append(values, n)
			}
		}
		s := &jsonschema.Schema{Enum: values}
		if c.name == "noneof" {
			s = not(s)
		}
		return s, nil
	case "min", "max", "gt", "gte", "lt", "lte", "len", "eq", "ne":
	default:
		return nil, nil
	}
	n, exact, err := parameter(t, c.param)
	if err != nil || !exact {
		return nil, err
	}
	switch c.name {
	case "min", "gte":
		return &jsonschema.Schema{Minimum: &n}, nil
	case "max", "lte":
		return &jsonschema.Schema{Maximum: &n}, nil
	case "gt":
		return &jsonschema.Schema{ExclusiveMinimum: &n}, nil
	case "lt":
		return &jsonschema.Schema{ExclusiveMaximum: &n}, nil
	case "ne":
		return not(constant(n)), nil
	default:
		return constant(n), nil
	}
}

// parameter reads a number as the validator does for a field of type t. It is not exact when a double cannot hold it.
func parameter(t reflect.Type, param string) (n float64, exact bool, err error) {
	switch {
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		n, err = strconv.ParseFloat(param, t.Bits())
		return n, true, err
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr:
		u, err := strconv.ParseUint(param, 0, 64)
		return float64(u), u <= 1<<53, err
	default:
		i, err := strconv.ParseInt(param, 0, 64)
		return float64(i), -1<<53 <= i && i <= 1<<53, err
	}
}

// limits are the smallest and the largest count that a check allows.
func limits(c check) (low, high *int, err error) {
	n64, err := strconv.ParseInt(c.param, 0, 32)
	if err != nil {
		return nil, nil, err
	}
	n := int(n64)
	switch c.name {
	case "min", "gte":
		low = &n
	case "max", "lte":
		high = &n
	case "gt":
		n++
		low = &n
	case "lt":
		n--
		high = &n
	default:
		low, high = &n, &n
	}
	if high != nil && *high < 0 {
		return nil, nil, fmt.Errorf("no value has a length of %d", *high)
	}
	if low != nil && *low <= 0 {
		low = nil
	}
	return low, high, nil
}

func texts(param string) []any {
	var values []any
	for _, v := range Choices(param) {
		if !slices.Contains(values, any(v)) {
			values = append(values, v)
		}
	}
	return values
}

func constant(v any) *jsonschema.Schema { return &jsonschema.Schema{Const: &v} }

func not(s *jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{Not: s} }

func pattern(p string) *jsonschema.Schema { return &jsonschema.Schema{Pattern: p} }

// spelling is how JSON Schema says a rule about the characters of a string. A pattern allows what the rule allows, and more only where
// noted; a format alone is a note.
type spelling struct{ pattern, format string }

// spellings uses only what regular expressions mean alike in Go and in ECMA-262, which JSON Schema refers to.
var spellings = map[string]spelling{
	"alpha":            {pattern: `^[a-zA-Z]+$`},
	"alphaspace":       {pattern: `^[a-zA-Z ]+$`},
	"alphanum":         {pattern: `^[a-zA-Z0-9]+$`},
	"alphanumspace":    {pattern: `^[a-zA-Z0-9 ]+$`},
	"numeric":          {pattern: `^[-+]?[0-9]+(?:\.[0-9]+)?$`},
	"number":           {pattern: `^[0-9]+$`},
	"hexadecimal":      {pattern: `^(?:0[xX])?[0-9a-fA-F]+$`},
	"ascii":            {pattern: `^[\x00-\x7F]*$`},
	"printascii":       {pattern: `^[ -~]*$`},
	"md5":              {pattern: `^[0-9a-f]{32}$`},
	"sha256":           {pattern: `^[0-9a-f]{64}$`},
	"sha384":           {pattern: `^[0-9a-f]{96}$`},
	"sha512":           {pattern: `^[0-9a-f]{128}$`},
	"ulid":             {pattern: `^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$`},
	"e164":             {pattern: `^\+?[1-9][0-9]{7,14}$`},
	"bic":              {pattern: `^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$`},
	"hostname_rfc1123": {pattern: `^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`},

	"uuid":         {pattern: `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`, format: "uuid"},
	"uuid_rfc4122": {pattern: `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`, format: "uuid"},
	"uuid4":        {pattern: `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, format: "uuid"},
	"uuid5":        {pattern: `^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, format: "uuid"},
	"uuid7":        {pattern: `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, format: "uuid"},

	// The rules know the codes that exist; the patterns know what codes look like.
	"iso4217":          {pattern: `^[A-Z]{3}$`},
	"iso3166_1_alpha2": {pattern: `^[A-Z]{2}$`},
	"iso3166_1_alpha3": {pattern: `^[A-Z]{3}$`},

	"email":     {format: "email"},
	"url":       {format: "uri"},
	"http_url":  {format: "uri"},
	"https_url": {format: "uri"},
	"uri":       {format: "uri-reference"},
	"ipv4":      {format: "ipv4"},
	"ipv6":      {format: "ipv6"},
}

package workflow

import (
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// plainRules are the rules without a parameter, in words.
var plainRules = map[string]string{
	"required":         "is required",
	"isdefault":        "must be absent",
	"unique":           "must not have an entry twice",
	"alpha":            "must consist of letters a-z",
	"alphanum":         "must consist of letters a-z and digits",
	"numeric":          "must be a decimal number",
	"number":           "must consist of digits",
	"hexadecimal":      "must be a hexadecimal number",
	"ascii":            "must consist of ASCII characters",
	"printascii":       "must consist of printable ASCII characters",
	"lowercase":        "must be in lower case",
	"uppercase":        "must be in upper case",
	"email":            "must be an email address",
	"url":              "must be a URL",
	"http_url":         "must be an HTTP URL",
	"https_url":        "must be an HTTPS URL",
	"uri":              "must be a URI",
	"uuid":             "must be a UUID",
	"uuid4":            "must be a UUID of version 4",
	"uuid7":            "must be a UUID of version 7",
	"ulid":             "must be a ULID",
	"ip":               "must be an IP address",
	"ipv4":             "must be an IPv4 address",
	"ipv6":             "must be an IPv6 address",
	"e164":             "must be a phone number in the form +4930123456",
	"iso4217":          "must be an ISO 4217 currency code",
	"iso3166_1_alpha2": "must be an ISO 3166-1 country code of two letters",
	"iso3166_1_alpha3": "must be an ISO 3166-1 country code of three letters",
}

// boundRules are the rules whose parameter is a number, in words.
var boundRules = map[string]string{
	"gt": "must be more than ", "gte": "must be at least ", "min": "must be at least ",
	"lt": "must be less than ", "lte": "must be at most ", "max": "must be at most ",
	"len": "must be exactly ",
}

// fieldRules are the rules whose parameter names other fields, in words.
var fieldRules = map[string]string{
	"required_with":        "is required with ",
	"required_with_all":    "is required with ",
	"required_without":     "is required without ",
	"required_without_all": "is required without ",
	"excluded_with":        "must be absent with ",
	"excluded_with_all":    "must be absent with ",
	"excluded_without":     "must be absent without ",
	"excluded_without_all": "must be absent without ",
	"eqfield":              "must equal ",
	"nefield":              "must differ from ",
	"gtfield":              "must be more than ",
	"gtefield":             "must be at least ",
	"ltfield":              "must be less than ",
	"ltefield":             "must be at most ",
}

// ruleText says which rule of the payload a value breaks.
func ruleText(payload reflect.Type, f validator.FieldError) string {
	tag, param := f.Tag(), f.Param()
	if text, ok := plainRules[tag]; ok {
		return text
	}
	if text, ok := boundRules[tag]; ok {
		return text + param + unit(f.Kind(), param)
	}
	if text, ok := fieldRules[tag]; ok {
		if names, ok := fieldNames(payload, f.StructNamespace(), strings.Fields(param)); ok {
			return text + strings.Join(names, ", ")
		}
	}
	switch tag {
	case "oneof":
		return "must be one of: " + strings.Join(schemagen.Choices(param), ", ")
	case "eq":
		return "must be " + param
	case "ne":
		return "must not be " + param
	case "datetime":
		return "must be a time in the form " + param
	case "startswith", "endswith", "contains":
		return "must " + map[string]string{"startswith": "start with ", "endswith": "end with ", "contains": "contain "}[tag] + param
	case "required_if", "required_unless":
		return "is required with the given other fields"
	case "excluded_if", "excluded_unless":
		return "must be absent with the given other fields"
	}
	if _, about := fieldRules[tag]; about || strings.HasSuffix(tag, "field") {
		return "does not fit the other fields"
	}
	if param == "" {
		return "must satisfy " + tag
	}
	return "must satisfy " + tag + "=" + param
}

// unit is what a bound on a value of the kind counts.
func unit(k reflect.Kind, count string) string {
	one, many := "", ""
	switch k {
	case reflect.String:
		one, many = " character", " characters"
	case reflect.Slice, reflect.Array, reflect.Map:
		one, many = " entry", " entries"
	}
	if count == "1" {
		return one
	}
	return many
}

// fieldNames returns the JSON names of fields next to the one at the namespace, which consists of Go names.
func fieldNames(payload reflect.Type, namespace string, fields []string) ([]string, bool) {
	path := strings.Split(strings.TrimPrefix(namespace, payload.Name()+"."), ".")
	parent := payload
	for _, step := range path[:len(path)-1] {
		name, _, _ := strings.Cut(step, "[")
		f, ok := fieldOf(parent, name)
		if !ok {
			return nil, false
		}
		parent = f.Type
	}
	var names []string
	for _, field := range fields {
		f, ok := fieldOf(parent, field)
		if !ok {
			return nil, false
		}
		names = append(names, schemagen.JSONName(f))
	}
	return names, true
}

// fieldOf looks a field up in a struct, or in the struct that t points to or
// has entries of.
func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	return t.FieldByName(name)
}

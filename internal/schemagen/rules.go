package schemagen

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"
)

// rules is a parsed validate tag.
type rules struct {
	blocks []block // all of which must hold, in order
	dive   bool    // whether keys and elem are applied to the entries
	keys   *rules
	elem   *rules
}

// block is one rule, or alternatives of which one must hold.
type block struct {
	text   string
	checks []check
}

type check struct{ name, param string }

// parseRules reads a validate tag as package validator does.
func parseRules(tag string) rules {
	if tag == "" {
		return rules{}
	}
	r, _ := parseList(strings.Split(tag, ","))
	return r
}

// parseList parses rules up to the end or an endkeys, and returns the rest.
func parseList(list []string) (r rules, tail []string) {
	for i, text := range list {
		switch text {
		case "endkeys":
			return r, list[i+1:]
		case "dive":
			r.dive = true
			after := list[i+1:]
			if len(after) > 0 && after[0] == "keys" {
				keys, behind := parseList(after[1:])
				r.keys, after = &keys, behind
			}
			elem, behind := parseList(after)
			r.elem = &elem
			return r, behind
		default:
			b := block{text: text}
			for alternative := range strings.SplitSeq(text, "|") {
				name, param, _ := strings.Cut(alternative, "=")
				param = strings.NewReplacer("0x2C", ",", "0x7C", "|").Replace(param)
				b.checks = append(b.checks, check{name, param})
			}
			r.blocks = append(r.blocks, b)
		}
	}
	return r, nil
}

// tag writes the rules as a validate tag, without those between fields.
func (r rules) tag() string {
	var list []string
	for _, b := range r.blocks {
		if !b.any(fieldRules) {
			list = append(list, b.text)
		}
	}
	if r.dive {
		list = append(list, "dive")
		if r.keys != nil {
			list = append(list, "keys", r.keys.tag(), "endkeys")
		}
		list = append(list, r.elem.tag())
	}
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), ",")
}

// skipsNested reports whether the validator does not look into the struct that has these rules.
func (r rules) skipsNested() bool {
	return slices.ContainsFunc(r.blocks, func(b block) bool { return b.any(skipping) })
}

// any reports whether the block has a check of one of the names.
func (b block) any(names []string) bool {
	return slices.ContainsFunc(b.checks, func(c check) bool { return slices.Contains(names, c.name) })
}

var (
	skipping = []string{"structonly", "nostructlevel", "-"}
	omitting = []string{"omitempty", "omitnil", "omitzero"}
)

// fieldRules look at other fields than their own.
var fieldRules = []string{
	"required_if", "required_unless", "required_with", "required_with_all", "required_without",
	"required_without_all", "skip_unless", "excluded_if", "excluded_unless", "excluded_with",
	"excluded_with_all", "excluded_without", "excluded_without_all",
	"eqfield", "nefield", "gtfield", "gtefield", "ltfield", "ltefield",
	"eqcsfield", "necsfield", "gtcsfield", "gtecsfield", "ltcsfield", "ltecsfield",
	"fieldcontains", "fieldexcludes", "postcode_iso3166_alpha2_field",
}

// impure are the rules that depend on the disk or the network.
var impure = []string{
	"file", "filepath", "dir", "dirpath", "image", "uds_exists",
	"tcp4_addr", "tcp6_addr", "tcp_addr", "udp4_addr", "udp6_addr", "udp_addr",
	"ip4_addr", "ip6_addr", "ip_addr", "unix_addr", "mimetype",
}

// beyondTexts are the rules that look at values of other types than texts, at those at least that the validator does not panic at.
// In place of any other value the rest look at the text "<int Value>", which says nothing of it.
var beyondTexts = []string{
	"required", "isdefault", "unique", "validateFn", "oneof", "noneof",
	"len", "min", "max", "eq", "ne", "lt", "lte", "gt", "gte",
	"numeric", "number", "boolean", "port", "latitude", "longitude", "luhn_checksum",
	"iso3166_1_alpha_numeric", "iso3166_1_alpha_numeric_eu", "iso4217_numeric", "country_code", "eu_country_code", "json",
}

// ofStringers are the rules that use a value's String method if it is not a string.
var ofStringers = []string{
	"uuid", "uuid3", "uuid4", "uuid5", "uuid7", "uuid_rfc4122", "uuid3_rfc4122", "uuid4_rfc4122", "uuid5_rfc4122", "ulid",
}

// readsValues reports whether the answer of a rule depends on the values of t.
func readsValues(t reflect.Type, rule string) bool {
	return t.Kind() == reflect.String || implements[validator.Valuer](t) || slices.Contains(beyondTexts, rule) ||
		slices.Contains(ofStringers, rule) && t.Implements(reflect.TypeFor[fmt.Stringer]())
}

// clocked are the rules that compare a time with the present.
var clocked = []string{"gt", "gte", "lt", "lte", "min", "max"}

var choice = regexp.MustCompile(`'[^']*'|\S+`)

// Choices splits the parameter of a oneof rule into its values.
func Choices(param string) []string {
	values := choice.FindAllString(param, -1)
	for i, v := range values {
		values[i] = strings.ReplaceAll(v, "'", "")
	}
	return values
}

package schemagen

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/go-playground/validator/v10"
	"github.com/google/uuid"
)

type itself struct{ Value string }

func (i *itself) UnmarshalJSON(b []byte) error { i.Value = string(b); return nil }

type tree struct{ Children []tree }

type colour struct{ Name string }

func (c *colour) UnmarshalText(b []byte) error { c.Name = string(b); return nil }

// twice is a struct with two fields of one name, which vet would not let pass in the source.
func twice() any {
	t := reflect.TypeFor[int]()
	return reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: t, Tag: `json:"x"`}, {Name: "B", Type: t, Tag: `json:"x"`},
	})).Elem().Interface()
}

// A type that the decoder or the validator could fail on for every payload is refused.
func TestOfRefusesTypesThatCannotBeDecoded(t *testing.T) {
	cases := []struct {
		name string
		typ  any
		want string
	}{
		{"not a struct", "", "must be a struct"},
		{"a struct that decodes itself", itself{}, "must be a struct that is decoded field by field"},
		{"a time", time.Time{}, "must be a struct that is decoded field by field"},
		{"itself inside", tree{}, "schemagen.tree contains itself"},
		{"a channel", struct{ C chan int }{}, "chan int"},
		{"a function", struct{ F func() }{}, "func()"},
		{"a channel behind a pointer", struct{ C *chan int }{}, "field C: chan int: it has no JSON form"},
		{"an interface", struct{ E error }{}, "field E: error: it has no JSON form"},
		{"a duration", struct{ D time.Duration }{}, "time.Duration"},
		{"durations", struct{ D []time.Duration }{}, "time.Duration"},
		{"keys that are floats", struct{ M map[float64]int }{}, "keys that are not strings"},
		{"one name twice", twice(), "conflict over JSON object name"},
		{"an embedded struct that cannot be filled", struct {
			shallow `json:"inner"`
		}{}, "the decoder cannot fill"},
		{"nothing exported", struct{ a int }{}, "no exported fields"},
		{"a text as a quoted number", struct {
			S string `json:",string"`
		}{}, "string"},
		{"a name in any case", struct {
			A int `json:"a,case:ignore"`
		}{}, "field A: no schema can say that its name may have any case"},
		{"a number that takes the other members", struct {
			A int `json:",embed"`
		}{}, "must be a Go struct, Go map of string key, or jsontext.Value"},
		{"an unknown rule", struct {
			A string `validate:"reqired"`
		}{}, `field A: rule "reqired": the validator cannot apply it: Undefined validation function 'reqired'`},
		{"an unknown rule that is not reached", struct {
			A string `validate:"omitempty,nosuch"`
		}{}, `rule "nosuch"`},
		{"a rule for another type", struct {
			A bool `validate:"omitempty,min=1"`
		}{}, `rule "min=1": the validator cannot apply it: Bad field type bool`},
		{"a rule for texts, on a number", struct {
			A int `validate:"email"`
		}{}, `field A: rule "email": email applies to strings, not to int`},
		{"a rule for texts that every number keeps", struct {
			A *int `validate:"omitempty,excludes=1"`
		}{}, `rule "excludes=1": excludes applies to strings, not to int`},
		{"a rule for texts, on a list", struct {
			A []string `validate:"contains=a"`
		}{}, `rule "contains=a": contains applies to strings, not to []string`},
		{"a rule for texts, on bytes", struct {
			A []byte `validate:"omitempty,base64"`
		}{}, `base64 applies to strings, not to []uint8`},
		{"a rule for texts, on a UUID", struct {
			A uuid.UUID `validate:"omitempty,email"`
		}{}, `email applies to strings, not to uuid.UUID`},
		{"a rule for another type behind one that the zero keeps", struct {
			A int `validate:"isdefault|datetime=2006-01-02"`
		}{}, `rule "isdefault|datetime=2006-01-02": the validator cannot apply it: Bad field type int`},
		{"a rule that reads a file", struct {
			A string `validate:"omitempty,mimetype=image/png"`
		}{}, `it asks the disk or the network`},
		{"a choice of floats", struct {
			A float64 `validate:"omitempty,oneof=1 2"`
		}{}, "Bad field type float64"},
		{"a bound that is no number", struct {
			A int `validate:"omitempty,max=many"`
		}{}, `rule "max=many"`},
		{"a length below none", struct {
			A string `validate:"omitempty,lt=0"`
		}{}, "no value has a length of -1"},
		{"a rule for some types only", struct {
			A any `validate:"omitempty,min=1"`
		}{}, "the value may be of any type"},
		{"entries that cannot be compared", struct {
			A []map[string]int `validate:"unique"`
		}{}, "entries cannot be compared"},
		{"entries that may not be comparable", struct {
			A []struct{ B any } `validate:"unique"`
		}{}, "entries cannot be compared"},
		{"entries of a string", struct {
			A string `validate:"omitempty,dive,max=1"`
		}{}, `rule "dive": string has no entries`},
		{"a rule in entries", struct {
			A []string `validate:"dive,nosuch"`
		}{}, `field A: rule "nosuch"`},
		{"a rule in keys", struct {
			A map[string]int `validate:"dive,keys,nosuch,endkeys"`
		}{}, `field A: keys: rule "nosuch"`},
		{"a rule between fields without its parameters", struct {
			A string `validate:"required_if=B"`
			B string
		}{}, "Bad param number for required_if"},
		{"a rule that reads the clock", struct {
			A time.Time `validate:"omitempty,gt"`
		}{}, `rule "gt": it reads the clock`},
		{"a rule that reads the disk", struct {
			A string `validate:"omitempty,file"`
		}{}, `rule "file": it asks the disk or the network`},
		{"a rule that asks the network", struct {
			A string `validate:"omitempty,alpha|tcp_addr"`
		}{}, "it asks the disk or the network"},
	}
	v := validator.New(validator.WithRequiredStructEnabled())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Of(reflect.TypeOf(c.typ), v)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	_ = struct{ a int }{}.a
}

// Rules that the validator knows how to ask of other values than texts.
func TestOfTakesRulesThatAreNotForTextsAlone(t *testing.T) {
	v := validator.New(validator.WithRequiredStructEnabled())
	type payload struct {
		ID      uuid.UUID  `validate:"omitempty,uuid|uuid7"`
		Ref     *uuid.UUID `validate:"omitempty,uuid4"`
		Port    uint16     `validate:"omitempty,port"`
		North   float64    `validate:"latitude"`
		Digits  int        `validate:"numeric,number,oneof=1 2 0"`
		Country int        `validate:"omitempty,country_code"`
		Yes     bool       `validate:"boolean"`
		Raw     []byte     `validate:"omitempty,json,unique"`
		Choice  string     `validate:"omitempty,email|eq=none"`
	}
	if _, err := Of(reflect.TypeFor[payload](), v); err != nil {
		t.Error(err)
	}
}

// Data may be deeper than payloads, and must be writable all the same.
func TestStored_Errors(t *testing.T) {
	good := []any{
		0, "", tree{}, map[string]tree{}, map[colour]int{}, []*tree{}, itself{}, colour{}, time.Time{}, []byte{},
		struct {
			A any
			B jsontext.Value
			C map[string]int `json:",embed"`
		}{},
	}
	for _, v := range good {
		if _, err := Stored(reflect.TypeOf(v)); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
	bad := []struct {
		typ  any
		want string
	}{
		{struct{ A []time.Duration }{}, "field A: time.Duration: no default representation"},
		{struct {
			A map[string]struct{ B chan int }
		}{}, "field A: member B: chan int: it has no JSON form"},
		{struct{ A map[bool]int }{}, "keys that are not strings"},
		{struct{ a int }{}, "no exported fields"},
		{struct {
			A map[string]error `json:",embed"`
		}{}, "error: it has no JSON form"},
		{struct {
			A []int `json:",embed"`
		}{}, "embedded"},
	}
	for _, c := range bad {
		_, err := Stored(reflect.TypeOf(c.typ))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: got %v, want %q in it", c.typ, err, c.want)
		}
	}
}

type shallow struct{ Name, Deep string }

type Shallow struct{ Name string }

type tagged struct {
	N string `json:"Deep"`
}

// The decoder itself is asked, by Of, whether it knows these names.
func TestFieldsAreThoseOfTheDecoder(t *testing.T) {
	type twin struct{ Deep string }
	cases := []struct {
		typ  any
		want string
	}{
		{shallow{}, "Name Deep"},
		{struct {
			shallow
			Name string `json:"name"`
		}{}, "Name Deep name"},
		{struct {
			shallow
			Name string
		}{}, "Deep Name"},
		{struct {
			twin
			shallow
		}{}, "Name"},
		{struct {
			tagged
			twin
		}{}, "Deep"},
		{struct {
			leftC
			rightC
			Own string
		}{}, "Own"},
		{struct {
			Shallow `json:"inner"`
			Skip    int `json:"-"`
			Quoted  int `json:"a b,string"`
		}{}, "inner a b"},
	}
	for _, c := range cases {
		var names []string
		members, _ := fieldsOf(reflect.TypeOf(c.typ))
		for _, m := range members {
			names = append(names, m.name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%T: got %q, want %q", c.typ, got, c.want)
		}
		if err := probe(reflect.TypeOf(c.typ), members); err != nil {
			t.Errorf("%T: %v", c.typ, err)
		}
	}
}

type (
	restA struct {
		Others map[string]int `json:",embed"`
	}
	restB struct {
		More map[string]string `json:",embed"`
	}
	deepA  struct{ restA }
	Common struct{ Same string }
	leftC  struct{ Common }
	rightC struct{ Common }
)

// Unnamed members are matched as package json matches them; the test compares both.
func TestAdditionalMembers(t *testing.T) {
	for _, c := range []struct {
		typ  any
		want reflect.Type
	}{
		{struct{ restA }{}, reflect.TypeFor[map[string]int]()},
		{struct {
			restA
			restB
		}{}, nil},
		{struct {
			deepA
			restB
		}{}, reflect.TypeFor[map[string]string]()},
		{struct {
			restA
			Own map[string]string `json:",embed"`
		}{}, reflect.TypeFor[map[string]string]()},
	} {
		typ := reflect.TypeOf(c.typ)
		if _, rest := fieldsOf(typ); rest != c.want {
			t.Errorf("%s: %v, want %v", typ, rest, c.want)
		}
		v := reflect.New(typ).Interface()
		err := json.Unmarshal([]byte(`{"none":null}`), v, json.RejectUnknownMembers(true))
		if taken := err == nil; taken != (c.want != nil) {
			t.Errorf("%s: the decoder says %v", typ, err)
		}
		l := LayoutOf(typ)
		if _, _, known := l.Member("none"); known != (c.want != nil) {
			t.Errorf("%s: the layout says %v", typ, known)
		}
		if _, err := Stored(typ); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
}

func TestParseRulesReadsWhatItWrites(t *testing.T) {
	for _, tag := range []string{
		"", "required", "omitempty,oneof=a 'b c',max=3", "required,dive,min=1", "email|uuid,max=9",
		"max=2,dive,keys,min=2,endkeys,required", "dive,keys,alpha,endkeys,dive,required", "startswith=0x2C",
	} {
		if got := parseRules(tag).tag(); got != tag {
			t.Errorf("%q came back as %q", tag, got)
		}
	}
	if got := parseRules("required,eqfield=A,max=3").tag(); got != "required,max=3" {
		t.Errorf("the rule between fields stays: %q", got)
	}
	if got := parseRules("startswith=0x2C").blocks[0].checks[0].param; got != "," {
		t.Errorf("the comma is %q", got)
	}
}

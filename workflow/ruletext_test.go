package workflow

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every rule speaks in words, with the names of the JSON.
func TestRulesInWords(t *testing.T) {
	type inner struct {
		Code   string `json:"code"`
		Reason string `json:"reason" validate:"required_with=Code"`
	}
	type payload struct {
		First   string            `json:"first"`
		Second  string            `json:"second" validate:"omitempty,eqfield=First"`
		Exactly string            `json:"exactly" validate:"omitempty,len=1"`
		Tags    []string          `json:"tags" validate:"omitempty,min=2,unique,dive,required"`
		One     []string          `json:"one" validate:"omitempty,min=1"`
		Rate    float64           `json:"rate" validate:"omitempty,gt=0,lte=1"`
		Mail    string            `json:"mail" validate:"omitempty,email"`
		Money   string            `json:"money" validate:"omitempty,iso4217"`
		Day     string            `json:"day" validate:"omitempty,datetime=2006-01-02"`
		Start   string            `json:"start" validate:"omitempty,startswith=x-"`
		Yes     string            `json:"yes" validate:"omitempty,eq=yes"`
		No      string            `json:"no" validate:"omitempty,ne=no"`
		Card    string            `json:"card" validate:"omitempty,credit_card"`
		Either  string            `json:"either" validate:"omitempty,ip|uuid"`
		Before  string            `json:"before" validate:"omitempty,endsnotwith=z"`
		If      string            `json:"if" validate:"required_if=First x"`
		Absent  string            `json:"absent" validate:"excluded_if=First x"`
		Two     string            `json:"two" validate:"required_with_all=First Mail"`
		Lines   []inner           `json:"lines" validate:"dive"`
		ByName  map[string]*inner `json:"by_name" validate:"dive"`
		Cross   string            `json:"cross" validate:"omitempty,eqcsfield=Nope.X"`
	}
	cases := map[string]FieldError{
		`{"second":"x"}`:                         {"/second", "must equal first"},
		`{"exactly":"ab"}`:                       {"/exactly", "must be exactly 1 character"},
		`{"tags":["a"]}`:                         {"/tags", "must be at least 2 entries"},
		`{"tags":["a","a"]}`:                     {"/tags", "must not have an entry twice"},
		`{"tags":["a",""]}`:                      {"/tags/1", "is required"},
		`{"one":[]}`:                             {"/one", "must be at least 1 entry"},
		`{"rate":-1}`:                            {"/rate", "must be more than 0"},
		`{"rate":2}`:                             {"/rate", "must be at most 1"},
		`{"mail":"a"}`:                           {"/mail", "must be an email address"},
		`{"money":"eur"}`:                        {"/money", "must be an ISO 4217 currency code"},
		`{"day":"today"}`:                        {"/day", "must be a time in the form 2006-01-02"},
		`{"start":"y"}`:                          {"/start", "must start with x-"},
		`{"yes":"no"}`:                           {"/yes", "must be yes"},
		`{"no":"no"}`:                            {"/no", "must not be no"},
		`{"card":"1"}`:                           {"/card", "must satisfy credit_card"},
		`{"either":"1"}`:                         {"/either", "must satisfy ip|uuid"},
		`{"before":"z"}`:                         {"/before", "must satisfy endsnotwith=z"},
		`{"first":"x"}`:                          {"/if", "is required with the given other fields"},
		`{"first":"x","if":"y","absent":"z"}`:    {"/absent", "must be absent with the given other fields"},
		`{"first":"y","mail":"a@b.de"}`:          {"/two", "is required with first, mail"},
		`{"lines":[{},{"code":"c"}]}`:            {"/lines/1/reason", "is required with code"},
		`{"by_name":{"k":{"code":"c"}}}`:         {"/by_name/k/reason", "is required with code"},
		`{"by_name":{"a.b":{"code":"c"}}}`:       {"/by_name/a.b/reason", "does not fit the other fields"},
		`{"cross":"x"}`:                          {"/cross", "does not fit the other fields"},
		`{"by_name":{"k":{"reason":"r","x":1}}}`: {"/by_name/k/x", "unknown field"},
	}
	s := startWith[payload](t)
	for document, want := range cases {
		_, err := s.Decode([]byte(document))
		e, ok := errors.AsType[*Error](err)
		if !ok || len(e.Fields) != 1 || e.Fields[0] != want {
			t.Errorf("%s: got %+v, want %+v", document, err, want)
			assert.False(t, ok, e.Fields)
		}
	}
}

func TestPointersOfNamelessPayloads(t *testing.T) {
	s := startWith[struct {
		Lines []struct {
			SKU string `json:"sku" validate:"required"`
		} `json:"lines" validate:"required,dive"`
	}](t)
	for document, want := range map[string]string{`{}`: "/lines", `{"lines":[{}]}`: "/lines/0/sku"} {
		_, err := s.Decode([]byte(document))
		e, ok := errors.AsType[*Error](err)
		assert.Truef(t, ok && len(e.Fields) == 1 && e.Fields[0].Pointer == want, "%s: %v", document, err)
	}
}

type generic[T any] struct {
	Values []T `json:"values" validate:"required"`
}

func TestPointersOfGenericPayloads(t *testing.T) {
	_, err := startWith[generic[line]](t).Decode(nil)
	e, ok := errors.AsType[*Error](err)
	assert.Truef(t, ok && len(e.Fields) == 1 && e.Fields[0] == (FieldError{"/values", "is required"}), "got %v", err)
}

func TestShortenKeepsWholeNames(t *testing.T) {
	long := strings.Repeat("k", maxPointer)
	for pointer, want := range map[string]string{
		"": "", "/a/b": "/a/b", "/" + long: "", "/a/b/" + long: "/a/b", "/" + long[1:]: "/" + long[1:],
	} {
		assert.Equal(t, want, shorten(pointer))
	}
}

package workflow

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// kinds has a member of every form, none of which has to be there.
type kinds struct {
	Text   string         `json:"text"`
	Count  int            `json:"count"`
	On     bool           `json:"on"`
	List   []int          `json:"list"`
	Map    map[string]int `json:"map"`
	Any    any            `json:"any"`
	Ref    *int           `json:"ref"`
	At     time.Time      `json:"at"`
	ID     uuid.UUID      `json:"id"`
	Quoted uint8          `json:"quoted,string"`
	Ratio  float64        `json:"ratio,string"`
	Pair   [2]int         `json:"pair"`
	Open   opening        `json:"open"`
	Inner  struct {
		A string `json:"a"`
	} `json:"inner"`
	*Base3
}

type Base3 struct {
	Extra string `json:"extra"`
}

type strict struct {
	Name string `json:"name" validate:"required"`
	kinds3
}

type kinds3 struct {
	At   time.Time `json:"at"`
	Open opening   `json:"open"`
	Any  any       `json:"any"`
}

type cornerPayload struct {
	Kinds    kinds          `json:"kinds" validate:"required"`
	Strict   strict         `json:"strict" validate:"omitempty"`
	Zero     []int          `json:"zero" validate:"omitzero,min=2"`
	ZeroMap  map[string]int `json:"zero_map" validate:"omitzero,min=2"`
	ZeroRef  *int           `json:"zero_ref" validate:"omitzero,min=2"`
	ZeroText string         `json:"zero_text" validate:"omitzero,len=2"`
	Nil      *string        `json:"nil" validate:"omitnil,min=1"`
	Both     string         `json:"both" validate:"omitempty,alpha,startswith=a,endswith=z,contains=q,min=2,min=3"`
	Range    int            `json:"range" validate:"omitempty,gt=1,gte=5,lt=10,lte=8,ne=6"`
	Least    uint8          `json:"least" validate:"omitempty,gte=3"`
	Minus    int            `json:"minus" validate:"required,lt=0"`
	One      int            `json:"one" validate:"required,oneof=1 2"`
	Few      int            `json:"few" validate:"noneof=3 4"`
	Len      float64        `json:"len" validate:"omitempty,len=2.5"`
	Max      int64          `json:"max" validate:"max=9223372036854775807"`
	Set      []string       `json:"set" validate:"omitempty,unique,len=2"`
	Only     struct{}       `json:"only" validate:"structonly"`
	Unseen   strict         `json:"unseen" validate:"structonly"`
	Mixed    string         `json:"mixed" validate:"omitempty,oneof=a b,startswith=a"`
	Card     string         `json:"card" validate:"omitempty,credit_card|len=3"`
	Day      string         `json:"day" validate:"omitempty,datetime=2006-01-02"`
	Hour     string         `json:"hour" validate:"omitempty,datetime=15:04"`
	No       bool           `json:"no" validate:"eq=false"`
	Free     any            `json:"free" validate:"omitempty"`
	Raw      jsontext.Value `json:",embed"`
}

const (
	cornerHead = `{"kinds":{"text":"t"},"minus":-1,"one":2`
	corner     = cornerHead + `}`
)

func TestSchemaAgreesWithDecodeInCorners(t *testing.T) {
	member := func(m string) string { return cornerHead + `,` + m + `}` }
	kinds := func(k string) string { return `{"minus":-1,"one":1,"kinds":` + k + `}` }
	agree(t, startWith[cornerPayload](t), []string{
		corner, member(`"what":"ever"`), member(`"strict":{}`), member(`"strict":null`), member(`"strict":{"name":""}`),
		member(`"strict":{"name":"n","any":1}`), member(`"strict":{"any":null,"at":"0001-01-01T00:00:00Z"}`),
		member(`"zero":[]`), member(`"zero":[1,2]`), member(`"zero_map":{}`), member(`"zero_map":{"a":1,"b":2}`),
		member(`"zero_ref":0`), member(`"zero_ref":null`), member(`"zero_ref":2`), member(`"zero_text":""`),
		member(`"zero_text":"ab"`), member(`"nil":null`), member(`"nil":"x"`), member(`"both":""`), member(`"both":"aqz"`),
		member(`"range":0`), member(`"range":5`), member(`"range":8`), member(`"least":0`), member(`"least":3`),
		member(`"few":5`), member(`"len":2.5`), member(`"len":0`), member(`"max":9007199254740993`), member(`"set":["a","b"]`),
		member(`"only":{}`), member(`"unseen":{}`), member(`"mixed":"a"`), member(`"mixed":""`), member(`"mixed":null`),
		member(`"card":"abc"`), member(`"day":"2026-01-02"`), member(`"hour":"15:04"`), member(`"no":false`), member(`"free":[]`),
		kinds(`{"count":1}`), kinds(`{"on":true}`), kinds(`{"list":[]}`), kinds(`{"map":{}}`), kinds(`{"any":""}`), kinds(`{"ref":0}`),
		kinds(`{"at":"2026-01-02T03:04:05Z"}`), kinds(`{"id":"01936b0e-0000-7000-8000-000000000001"}`), kinds(`{"quoted":"1"}`),
		kinds(`{"ratio":"-0.5e3"}`), kinds(`{"pair":[0,1]}`), kinds(`{"inner":{"a":"x"}}`), kinds(`{"extra":""}`), kinds(`{"open":7}`),
	}, []string{
		`{}`, kinds(`null`), kinds(`{}`), kinds(`{"text":"","count":0,"on":false,"list":null,"map":null,"any":null,"ref":null}`),
		kinds(`{"at":null,"id":null,"quoted":null,"ratio":null,"pair":null,"inner":{}}`),
		kinds(`{"at":"0001-01-01T00:00:00Z","id":"00000000-0000-0000-0000-000000000000","inner":{"a":""}}`),
		kinds(`{"quoted":1}`), kinds(`{"quoted":"-1"}`), kinds(`{"ratio":"1."}`), kinds(`{"ratio":"NaN"}`),
		member(`"strict":{"name":null,"any":1}`),
		member(`"zero":[1]`), member(`"zero_map":{"a":1}`), member(`"zero_ref":1`), member(`"zero_text":"a"`),
		member(`"nil":""`), member(`"both":"az"`), member(`"both":"aq1z"`), member(`"both":"qaz"`), member(`"range":4`),
		member(`"range":9`), member(`"range":6`), member(`"least":2`), member(`"few":3`), member(`"len":2`),
		member(`"set":["a","a"]`), member(`"set":["a"]`), member(`"only":{"a":1}`), member(`"only":[]`), member(`"unseen":{"x":1}`),
		member(`"mixed":"b"`), member(`"no":true`), `{"kinds":{"text":"t"},"minus":1,"one":2}`, `{"kinds":{"text":"t"},"minus":-1,"one":0}`,
		`{"kinds":{"text":"t"},"minus":0,"one":1}`, `{"kinds":{"text":"t"},"minus":-1,"one":3}`,
	}, []string{
		kinds(`{"quoted":"0"}`), kinds(`{"open":null}`), kinds(`{"quoted":"256"}`),
		member(`"card":"abcd"`), member(`"day":"02.01.2026"`), member(`"hour":"soon"`),
		member(`"strict":{"open":""}`), member(`"strict":{"at":"2026-01-02T03:04:05Z"}`),
	})
}

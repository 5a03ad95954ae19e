package workflow

import (
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
)

func TestCorrection_Merge(t *testing.T) {
	type at struct {
		City string `json:"city"`
		Zip  string `json:"zip"`
	}
	type parcel struct {
		To    at             `json:"to"`
		By    map[string]at  `json:"by"`
		Lines []at           `json:"lines"`
		Pair  [2]int         `json:"pair"`
		Hash  [2]byte        `json:"hash"`
		Raw   jsontext.Value `json:"raw"`
	}
	const before = `{"to":{"city":"Graz","zip":"8010"},"by":{"a":{"city":"Linz","zip":"4020"}},"lines":[{"city":"Wien","zip":"1010"},` +
		`{"city":"Bozen","zip":"39100"}],"pair":[1,2],"hash":"AAA=","raw":{"x":1}}`
	correct := corrects[parcel](func() map[string]bool { return nil })
	got, err := correct([]byte(before), []byte(`{"to":{"zip":"8020"},"by":{"b":{"zip":"1"}},"lines":[{"zip":"1020"}],"raw":{"y":2}}`))
	const want = `{"to":{"city":"Graz","zip":"8020"},"by":{"a":{"city":"Linz","zip":"4020"},"b":{"city":"","zip":"1"}},` +
		`"lines":[{"city":"","zip":"1020"}],"pair":[1,2],"hash":"AAA=","raw":{"y":2}}`
	assert.Truef(t, string(got) == want && err == nil, "%s, %v", got, err)
	for change, message := range map[string]string{
		`{"pair":[1,2,3]}`: "must be an array of length 2", `{"pair":[1]}`: "must be an array of length 2",
		`{"hash":"AAAA"}`: "must be a base64 string of 2 bytes",
	} {
		_, err := correct([]byte(before), []byte(change))
		e, ok := errors.AsType[*Error](err)
		assert.Truef(t, ok && len(e.Fields) == 1 && e.Fields[0].Message == message, "%s: %v", change, err)
	}
}

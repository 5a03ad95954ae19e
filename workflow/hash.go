package workflow

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// takeHash sets the hash: of the description in canonical form (RFC 8785), without
// what instances do not depend on, and without attributes, which can be added as members of the data can. A payload
// enters as what its type means and not as the text of its schema, which a later release may write in another way.
func (w *Workflow) takeHash() error {
	d := w.Describe()
	d.Attributes = nil
	for i, s := range w.Steps {
		meaning, err := jsontext.AppendQuote(nil, schemagen.Meaning(s.body.payloadType()))
		if err != nil {
			return err
		}
		d.Transitions[i].Receives, d.Transitions[i].Payload = nil, meaning
	}
	raw, err := json.Marshal(d, jsonOut)
	if err != nil {
		return err
	}
	canonical := jsontext.Value(raw) // so that the order of the members does not count
	if err := canonical.Canonicalize(); err != nil {
		return err
	}
	sum := sha256.Sum256(canonical)
	w.Hash = hex.EncodeToString(sum[:])
	return nil
}

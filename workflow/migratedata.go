package workflow

import (
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/workflow/internal/unknown"
)

// convert makes new data of old data. Members that O does not know would be lost, so they are an error. gone are the members that the old
// version declares as dropped.
func convert[O, D any](data []byte, gone map[string]bool, into func(O) (D, error)) ([]byte, error) {
	old, kept, err := withoutGone[O](data, gone)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		if err := json.Unmarshal(kept, new(O), jsonKnown); err != nil {
			return nil, Errorf(MigrationRefused, "the data has a member that this build does not know in the old version, %q; "+
				"a build that knows it can take it over", decodeFailure(err).Pointer)
		}
	}
	d, err := into(old)
	if err != nil {
		return nil, err
	}
	return encodeData(&d)
}

// unchanged returns the data without the members that the old version declares as dropped. Data that D cannot read is an error, because the
// instance would be unusable.
func unchanged[O, D any](data []byte, gone map[string]bool) ([]byte, error) {
	if len(gone) > 0 {
		_, kept, err := withoutGone[O](data, gone)
		if err != nil {
			return nil, err
		}
		if kept != nil {
			data = kept
		}
	}
	if _, err := decodeData[D](data); err != nil {
		return nil, &Error{Code: MigrationRefused, Cause: err,
			Message: "the data has a member that the new version reads as another type, " + pointerOfStored(err)}
	}
	return data, nil
}

// withoutGone reads the data. kept is the data without the members that are gone, nil where O knows all of it.
func withoutGone[O any](data []byte, gone map[string]bool) (old O, kept []byte, err error) {
	old, before, err := decodeToChange[O](data)
	if err != nil || before == nil {
		return old, nil, err
	}
	written, err := encodeData(&old)
	if err != nil {
		return old, nil, err
	}
	kept, err = unknown.Keep(&old, data, before, written, gone)
	return old, kept, err
}

// pointerOfStored is where stored data could not be read, in quotes.
func pointerOfStored(err error) string {
	if e, ok := errors.AsType[*json.SemanticError](err); ok {
		return `"` + string(e.JSONPointer) + `"`
	}
	return "somewhere"
}

// planRefusal makes any error of a plan's function a refusal with the text that may be shown.
func planRefusal(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Code != Internal {
		return &Error{Code: MigrationRefused, Message: e.Detail(), Cause: e.Cause}
	}
	return refusal(err)
}

package workflow

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"

	"github.com/pawlhq/pawl/internal/schemagen"
)

func (a *Activity[D, P, R]) do(ctx context.Context, attempt *Attempt, data, payload []byte) ([]byte, error) {
	d, p, err := a.input(data, payload)
	if err != nil {
		return nil, err
	}
	result, err := a.work(ctx, attempt, d, p)
	if err != nil {
		return nil, err
	}
	return encodeResult(result)
}

func (a *Activity[D, P, R]) undo(ctx context.Context, attempt *Attempt, data, payload, result []byte) error {
	d, p, err := a.input(data, payload)
	if err != nil {
		return err
	}
	if len(result) == 0 {
		return a.undoing(ctx, attempt, d, p, nil)
	}
	r, err := decodeStored[R]("result", result)
	if err != nil {
		return err
	}
	return a.undoing(ctx, attempt, d, p, &r)
}

func (a *Activity[D, P, R]) check(ctx context.Context, attempt *Attempt, data, payload []byte) ([]byte, bool, error) {
	d, p, err := a.input(data, payload)
	if err != nil {
		return nil, false, err
	}
	result, err := a.checking(ctx, attempt, d, p)
	if err != nil || result == nil {
		return nil, false, err
	}
	raw, err := encodeResult(*result)
	return raw, err == nil, err
}

func (a *Activity[D, P, R]) done(c *Call, data, result []byte) ([]byte, error) {
	r, err := decodeStored[R]("result", result)
	if err != nil {
		return nil, err
	}
	return change(c, data, func(d *D) error { return a.ended(c, d, r) })
}

func (a *Activity[D, P, R]) fail(c *Call, data []byte, f Failure) ([]byte, error) {
	return change(c, data, func(d *D) error {
		if err := a.failed(c, d, f); err != nil {
			return &Error{Code: Internal, Message: "the workflow's code failed",
				Cause: fmt.Errorf("the failure action of %q refused: %w", c.step.Name, err)}
		}
		return nil
	})
}

// input decodes what an attempt gets, anew for each.
func (a *Activity[D, P, R]) input(data, payload []byte) (d D, p P, err error) {
	if d, err = decodeData[D](data); err != nil {
		return d, p, err
	}
	p, err = decodeStored[P]("payload", payload)
	return d, p, err
}

// ErrResult is wrapped by the errors of [Work.Do] and [Work.Check] that say: it has
// happened, but its result cannot be encoded. No attempt can mend that.
var ErrResult = errors.New("no JSON for the result")

func encodeResult[R any](result R) ([]byte, error) {
	raw, err := json.Marshal(&result, jsonOut)
	if err != nil {
		return nil, &Error{Code: Internal, Message: "the activity's result cannot be encoded", Cause: fmt.Errorf("%w: %w", ErrResult, err)}
	}
	return raw, nil
}

func (a *Activity[D, P, R]) fits(result []byte) error {
	var r R
	if err := json.Unmarshal(result, &r, jsonPayload); err != nil {
		return unreadableFields(result, reflect.TypeFor[R](), jsonPayload, err)
	}
	return validateResult(r)
}

// validateResult runs the validate tags of a result that is a struct; others
// have none.
func validateResult(r any) error {
	if t := reflect.TypeOf(r); t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return validateStruct(r)
}

// resultMembers lists the members of the result. check reports a type without them.
func (a *Activity[D, P, R]) resultMembers() map[string]string {
	members, _ := schemagen.Stored(reflect.TypeFor[R]())
	return members
}

// mistakes are what only the types and the functions show.
func (a *Activity[D, P, R]) mistakes() []string {
	var found []string
	if a.work == nil {
		found = append(found, "has no work")
	}
	if a.ended == nil {
		found = append(found, "has no function for the result of its work")
	}
	if a.failed == nil && (a.spec.Failed != "" || a.spec.FailedFrom != nil) {
		found = append(found, "has an OrElse without a function")
	}
	if a.undoing == nil && a.spec.Undoable {
		found = append(found, "has an Undo without a function")
	}
	if a.checking == nil && a.spec.Checkable {
		found = append(found, "has a Check without a function")
	}
	if _, err := schemagen.Stored(reflect.TypeFor[R]()); err != nil {
		found = append(found, fmt.Sprintf("has a result %s that cannot be stored as JSON: %v", reflect.TypeFor[R](), err))
	}
	return found
}

package workflow

import (
	"reflect"
	"strings"

	"github.com/go-playground/validator/v10"

	"github.com/pawlhq/pawl/internal/schemagen"
)

// nameMark stands before every JSON name in the validator's namespaces, which
// would else not say where a name with a dot or a bracket ends.
const nameMark = "\x00"

var validate = func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled(), validator.WithTagNameFuncBlankOmit())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name := schemagen.JSONName(f)
		if name == "" {
			return "" // its fields stand beside the others
		}
		return nameMark + strings.ReplaceAll(name, "[", nameMark)
	})
	return v
}()

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// pointerOf turns the validator's "Place.items[0].sku", with its marks, into
// "/items/0/sku".
func pointerOf(namespace string) string {
	_, path, found := strings.Cut(namespace, nameMark)
	if !found {
		return ""
	}
	var pointer strings.Builder
	for member := range strings.SplitSeq(path, "."+nameMark) {
		name, entries, indexed := strings.Cut(member, "[")
		pointer.WriteString("/" + escapePointer.Replace(strings.ReplaceAll(name, nameMark, "[")))
		if !indexed {
			continue
		}
		for key := range strings.SplitSeq(strings.TrimSuffix(entries, "]"), "][") {
			pointer.WriteString("/" + escapePointer.Replace(key))
		}
	}
	return pointer.String()
}

// maxPointer bounds how much of a payload's names an error repeats, in bytes.
const maxPointer = 512

// shorten cuts a pointer to the nearest enclosing place that it can name.
func shorten(pointer string) string {
	for len(pointer) > maxPointer {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer
}

package api

import (
	"strconv"
	"strings"
	"unicode"
)

// names gives components names that are identifiers in every language. Generators make types of them in their own style, so two
// names that differ only in case or underscores count as one.
type names map[string]bool

// unique returns the name, with a number if it is taken.
func (n names) unique(name string) string {
	unique := name
	for i := 2; n[plainly(unique)]; i++ {
		unique = name + "_" + strconv.Itoa(i)
	}
	n[plainly(unique)] = true
	return unique
}

func plainly(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// pascal writes the words of a text as one identifier: Idempotency-Key is IdempotencyKey.
func pascal(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// identifier is pascal, also for a text that begins with a digit.
func identifier(text string) string {
	if name := pascal(text); name == "" || name[0] < '0' || name[0] > '9' {
		return name
	}
	return "N" + pascal(text)
}

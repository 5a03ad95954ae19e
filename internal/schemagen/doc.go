// Package schemagen says in JSON Schema what the decoder of a payload accepts:
// the JSON form of a Go type, as package json reads it, under the rules of its
// validate tags, as package validator applies them.
//
// A missing field, a null and the zero value are one thing to the decoder, so
// a field whose rules refuse the zero value is required, and any other may be
// missing or null.
//
// A schema is never stricter than the decoder. It is exactly as strict but for
// what JSON Schema cannot say, or cannot say everywhere:
//   - rules between fields (required_with, eqfield) and rules without a keyword
//     (luhn_checksum) are left out;
//   - "format" is a note to most validators, and 64-bit integers have a format
//     instead of bounds that no double can hold;
//   - 1.0 and 1e2 are integers to JSON Schema, and to the decoder only once they
//     are written canonically, as 1 and 100.
//
// What could make the decoder fail for another reason than the payload is an
// error here: a type that package json cannot fill, a rule that does not fit
// its field, and a rule that reads the clock, the disk or the network.
//
// [Components] describes the values of the HTTP API by the same rules, without
// validate tags.
package schemagen

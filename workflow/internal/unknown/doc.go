// Package unknown keeps the members of an instance's data that the Go type of this build does
// not know: those that a newer build has added, or an older one still had.
//
// A transition decodes the data, changes the value and encodes it again. What the type does not
// know would be lost with that. Keep puts it back where it was:
//
//   - A member of a struct stays with its struct, also where the struct is written as nothing
//     because all that is known of it is zero, and behind a pointer. With a pointer that the transition has made nil the
//     struct is gone, and its unknown members with it.
//   - An entry of a map is known by its key.
//   - An element of an array is known by what this build reads of it: one that is as it was is the
//     same, wherever it stands now. Among the others, between the same neighbours, elements are taken
//     for changed in place where there are as many as before, for removed where there is none
//     now, and for new where there was none.
//     Where elements are not in their order any more, only one that alone has changed, where it was, is
//     taken for changed in place.
//   - In an array of fixed length an element that is not as it was is known by its place.
//
// Where an array leaves it open which element has become which, and something unknown depends
// on it, nothing is guessed: that is an [Ambiguous] error. A build that knows the members can do
// what this one cannot.
//
// A type that encodes or decodes itself is a secret to everybody else: what it does not keep by itself
// is lost, and meant to be.
package unknown

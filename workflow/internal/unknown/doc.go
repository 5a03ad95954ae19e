// Package unknown preserves members of an instance's data that the Go type of this build does not know: members that a newer
// build has added or an older one still had.
//
// A transition decodes the data, changes the value and encodes it again, which drops unknown members. Keep restores them:
//
//   - Members of a struct stay with their struct, behind pointers too, even if the struct is omitted because all its known fields are
//     zero. A pointer set to nil removes the struct and its unknown members.
//   - Entries of a map are identified by key.
//   - Elements of an array are identified by their known content: an unchanged element is recognised at any place. Of the others,
//     between the same neighbours, an equal number of elements counts as changed in place, a missing element as removed and an
//     additional one as new. If the order changed, only a single changed element at its old place counts as changed in place.
//   - In an array of fixed length a changed element is identified by its place.
//
// If an array does not determine which element became which, and unknown members depend on it, Keep returns an [Ambiguous] error. A
// build that knows the members can execute the transition.
//
// Types that encode or decode themselves are responsible for their unknown members.
package unknown

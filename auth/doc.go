// Package auth says who calls and what he may do: a [Principal] has [Grants], each a [Right] to
// everything of his tenant or to a [Target]. How a credential becomes a Principal is told by the
// packages below this one; nothing here knows HTTP, a clock or the database.
//
// What no grant covers is refused. A right implies no other one, but for [OperateAll], which
// implies [Operate].
package auth

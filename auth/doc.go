// Package auth defines callers and their permissions: a [Principal] has [Grants], each a [Right] to everything of its tenant or to a
// [Target]. The packages below it turn credentials into principals. This package does not depend on HTTP, a clock or the database.
//
// Requests without a matching grant are rejected. No right implies another, except that [OperateAll] implies [Operate].
package auth

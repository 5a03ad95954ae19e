// Package transitions defines the values exchanged with an engine: requests ([Command], [Message], [Operation]), results ([Receipt],
// [Result], [Problem]), stored data of transitions ([Instance], [Entry], [Event]), and the status of commands ([Record]).
//
// It does not depend on a context, a clock or the database. Package internal/kernel/decide executes commands.
package transitions

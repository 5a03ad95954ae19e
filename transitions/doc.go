// Package transitions has the values that everybody meets who works with an engine:
// what a caller asks ([Command], [Message], [Operation]), what it is told ([Receipt],
// [Result], [Problem]), what a transition leaves behind ([Instance], [Entry],
// [Event]), and how a command stands ([Record]).
//
// It knows no context, clock or database. How a command is decided is in
// internal/kernel/decide.
package transitions

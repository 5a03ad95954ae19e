// Package inbox is where messages from outside come in: sources that receive them,
// and the list of those that could not be consumed.
//
// A message is a command (see transitions.Message), so what makes sure that it is
// done once is what does so for any command: there is no table of messages. Only a
// dead message has a row here. It could not be read, nothing took it, it was
// refused, or its id belongs to another one.
package inbox

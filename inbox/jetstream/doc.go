// Package jetstream brings the messages of a stream of NATS JetStream into an
// inbox.
//
// # Once
//
// JetStream delivers at least once; the inbox takes a message once, by its id.
// A message is acknowledged when its effect is committed or when it is on the
// list of dead messages, never before. What happens in between, the death of the
// node or of the server included, brings the message again, and the inbox
// recognizes it.
//
// The id is the header Nats-Msg-Id, which publishers set for JetStream's own
// deduplication. That ends with the stream's window of duplicates; the inbox
// goes on for as long as it keeps keys. A message without the header, and
// without the one that [Config.IDHeader] names, is known by its place in the
// stream: published twice, it is two.
//
// A message of more than 1 MiB is acknowledged when it is on the list of dead
// messages, without its body: the stream keeps that for as long as it keeps any.
//
// # Several nodes
//
// All nodes name the same durable consumer, and the server gives each message to
// one of them. When that node dies, or does not say within [Config.AckWait] that
// it is still at it, the message goes to another. A node takes no more than it
// can begin at once, and gives back what it could not finish when it is stopped.
//
// # Order
//
// Messages are worked on at the same time, and a message that has to wait lets
// others pass, so they have no order. A message that comes before its instance
// is tried again later, with growing delays; what else must not be overtaken is
// said by the states of the workflow.
//
// # What has to be there
//
// The stream is the publishers' and is not made. The durable consumer is made if
// it is absent, for all messages that the stream has. One that is there is left
// as it is, so it can also be made by hand, to begin elsewhere; it must be a pull
// consumer with explicit acknowledgement, for the subjects that are asked for if
// any are. If it is deleted it is made anew and begins at the start: what the
// inbox still remembers is recognized, but what is past its horizon would be
// taken for new. What was on the list of dead messages leaves it when it is consumed
// then: of a message that is older than the consumer it is not known that nobody had
// it before.
//
// # Versions of the server
//
// NATS 2.9 works with one subject, which may have wildcards, or none; several subjects need NATS 2.10. An older server ignores a list of
// subjects, so it is refused. A consumer of Pawl's that was left without subjects in that way, and has delivered nothing, is made anew.
package jetstream

// Package jetstream receives the messages of a NATS JetStream stream.
//
// # Idempotency
//
// JetStream delivers at least once; the inbox processes each message once, by its id. A message is
// acknowledged after its effect is committed or it is stored as a dead message. If the node or the
// server crashes before that, the message is redelivered and recognized.
//
// The id is the header Nats-Msg-Id, which publishers set for JetStream's own deduplication. That is
// limited to the stream's duplicate window; the inbox recognizes ids for the retention period of
// its keys. A message without this header and without [Config.IDHeader] is identified by its
// position in the stream, so if it is published twice it is processed twice.
//
// A message larger than 1 MiB is stored as a dead message without its body, which remains in the
// stream.
//
// # Nodes
//
// All nodes share a durable consumer, and the server delivers each message to one of them. If that
// node crashes or sends no heartbeat within [Config.AckWait], the message is redelivered to
// another. A node only fetches messages that it can start immediately, and returns unfinished
// messages when it stops.
//
// # Order
//
// Messages are processed concurrently and failed ones are retried later, so their order is not
// preserved. A message that arrives before its instance is retried with increasing delays. Use the
// states of the workflow to enforce any other order.
//
// # Setup
//
// The publishers must create the stream. The source creates the durable consumer if absent, for all
// messages in the stream. An existing consumer is not changed, so it can be created manually to
// start at another position; it must be a pull consumer with explicit acknowledgement and the
// configured subjects. If the consumer is deleted, a new one starts at the beginning: the inbox
// recognizes messages within the retention period of its keys, but processes older ones again. Dead
// messages that are consumed then are removed from the list, as messages older than the consumer
// may have been delivered before.
//
// # Server versions
//
// NATS 2.9 supports one subject, which may contain wildcards, or none. Several subjects require
// NATS 2.10; an older server ignores them and is therefore rejected. An unused consumer that was
// created without its subjects in this way is replaced.
package jetstream

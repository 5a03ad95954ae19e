// Package jetstream publishes events to a NATS JetStream stream.
//
// The body of a message is the CloudEvent. Its attributes are repeated in headers (ce-type,
// ce-subject and so on). The subject contains tenant, workflow and type, so that consumers can
// filter without parsing.
//
// # Order and repetitions
//
// Messages are published concurrently, except that an event is only sent after earlier ones of its
// instance were acknowledged, because a server may refuse one message and store the next. A batch
// therefore takes as many round trips as it has events of one instance.
//
// Every message carries its id ([sink.MessageID]) as Nats-Msg-Id. If a message is published again
// because its acknowledgement was lost, the stream drops it within its duplicate window. The relay
// waits at most half of this window between attempts. Only after an outage longer than the window
// can a message be in the stream twice; consumers recognize it by its id. The window costs server
// memory, so it is limited. Ids consist of tenant and position. Several installations that share a
// stream must each set a source (engine.Config.Source), which is then part of the id.
//
// # Acknowledgements
//
// An acknowledgement means that a majority of the stream's replicas have the message, or the
// process of a single server. The server's sync_interval determines when it is written to disk.
package jetstream

// Package jetstream delivers events to a stream of NATS JetStream.
//
// A message's body is the CloudEvent; its attributes are repeated in headers
// (ce-type, ce-subject and so on), and its subject is made of the tenant, the
// workflow and the type, so that consumers can choose without parsing.
//
// # Order and repetitions
//
// Messages are published without waiting for one before the next, except that
// an event is not sent before the earlier ones of its instance were
// acknowledged: a server may refuse one message and store the next. A batch
// takes as many round trips as it has events of one instance.
//
// Every message bears its id ([sink.MessageID]) as Nats-Msg-Id. What is
// published again because its acknowledgement was lost is dropped by the stream
// if the first is within its window of duplicates, and else is in it twice. The
// relay waits no longer than half of the window between two attempts. So only
// after an outage that was longer than the window, what was under way when it
// began may be in the stream twice, with one id, by which consumers tell. The
// window costs the server memory, so it cannot be as long as any outage. Tenant
// and position make the id: where several installations feed one stream each
// needs a source of its own (engine.Config.Source), which is then a part of it.
//
// # What an acknowledgement means
//
// That the server has the message: of a stream with replicas, most of them; of
// one without, its process. When that writes to disk is the server's setting
// (sync_interval).
package jetstream

// Package webhook delivers events to an HTTP endpoint, one POST per event, following Standard
// Webhooks 1.0.0 (https://www.standardwebhooks.com). The body is a CloudEvent in structured mode.
// Package inbox/signature implements signing and verification.
//
// # Responses
//
// Standard Webhooks and the CloudEvents webhook specification leave open how senders react to most
// responses. This package distinguishes what they concern:
//
//	2xx                         delivered
//	400, 413, 422, other 4xx    the event: parked at once
//	408, 409, 423, 425, 5xx,    the event, temporarily: retried
//	timeout
//	3xx, 401, 402, 403, 404,    the endpoint: address, secret or load must
//	405, 406, 407, 415, 421,    change, so parking events would not help;
//	429, 502, 503, 504,         the sink waits
//	no connection
//	410                         the endpoint refuses all further events
//
// Retry-After is respected in both forms. Redirections are never followed; correct the endpoint's
// address instead.
//
// # Allowed addresses
//
// Requests only go to public addresses or those in [Config.Private]. The address is checked after
// name resolution, when it is dialled, so a name cannot be rebound to another address. No proxy is
// used, because it would resolve the name itself.
package webhook

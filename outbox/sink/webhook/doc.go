// Package webhook delivers events to an HTTP endpoint, one POST each, as
// Standard Webhooks 1.0.0 (https://www.standardwebhooks.com) asks; the body is a
// CloudEvent in structured mode. Package inbox/signature signs, and has the
// receiver's half.
//
// # What an answer means
//
// Standard Webhooks and the CloudEvents webhook specification leave open what a
// sender does about most answers. Here they are told apart by what they are
// about:
//
//	2xx                         delivered
//	400, 413, 422, other 4xx    about the event: it is parked at once
//	408, 409, 423, 425, 5xx,    about the event, for now: it is tried again
//	no answer in time
//	3xx, 401, 402, 403, 404,    about the endpoint, for every event: its address,
//	405, 406, 407, 415, 421,    a secret or its load have to change, and parking
//	429, 502, 503, 504,         event after event would mend nothing; the sink
//	no connection               waits
//	410                         the endpoint wants no more events
//
// Retry-After is passed on, in either form. A redirection is never followed:
// the endpoint's address is to be corrected instead.
//
// # Where a request goes
//
// Only to addresses that are public, or listed in [Config.Private]. The address
// is checked when it is dialled, after the name was resolved, so that a name
// that resolves to another address the second time gets nowhere. No proxy is
// used, as it would resolve the name itself.
package webhook

// Package provider is a payment provider for the order example: a small one, but
// over real HTTP, and with the manners of the real ones. It honours idempotency
// keys, and on demand it fails, stalls and loses its answers, so that a workflow
// can be shown to charge once all the same. [Provider] is the server, [Client]
// the client; what has happened is kept in memory.
//
//	POST /charges        Idempotency-Key: K  {"amount":129900,"currency":"EUR","method":"card","reference":"c-1:k-9"}
//	GET  /charges/K      has it happened?
//	POST /refunds        Idempotency-Key: R  {"charge":"K"}
//	GET  /ledger         what has happened, by charge
//
// The first charge with a key decides, and every later one gets the same answer:
//
//	200  charged, with a receipt
//	402  declined: nothing was charged, and nothing will be with this key
//	409  voided: the key was refunded before its charge came
//
// A key that comes with another charge than the first time is refused with 422,
// a malformed request with 400, and neither counts as the first. 404 is the
// answer to whether something has happened that has not.
//
// A refund gives all of the money back, once, whatever the number of keys that
// ask for it. The refund of a charge that has not happened is remembered: a
// charge that comes late, from a client that has given it up, finds its key
// voided. The keys of refunds are apart from those of charges, so a client may
// use the charge's key for its refund.
package provider

// Package console serves web pages for operators: they find instances, see why one does not move, and repair it. The pages are HTML with a
// style sheet and one small script.
//
// The console calls the API in the same process with the credential of its user, and has no other access to the engine or the database. It
// checks rights only to decide which buttons it shows.
//
// A page is a GET without side effects, and its address has all parameters. A change is a POST of a form: from a page of the same origin,
// with the CSRF token of the session and an idempotency key that was created with the form, so that a double click has one effect. It
// redirects to a page that shows the effect.
//
// A page names the event streams that report its changes (data-live), and an interval for polling parts that no stream reports
// (data-poll). The script then requests the page again and replaces the parts that differ. Everything else works without it.
package console

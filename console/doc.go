// Package console is the pages on which people see every case, learn why one does not move, and mend it: HTML that is made
// here, with a style sheet and one small script.
//
// It asks the API for everything, in the same process and with the credential of its user, as any client does. So it can do
// nothing that the API does not let its user do, and knows no SQL, no engine and no table; what it shows of what a user may do
// decides only which buttons there are.
//
// A page is a GET that changes nothing, and has in its address all that it shows. A change is a POST of a form: from a page of
// this very origin, with the token of its session, and with an idempotency key that was made with the form, so a double click
// is one effect. What was done is answered with a redirection to where it is to be seen.
//
// A page says in data-live which event streams of the API tell that it has changed, and in data-poll how often to ask for it where
// no stream tells of all of it. Then the script asks for the page again, and puts the parts of it that are different in the place
// of those that it has. Nothing is rendered twice, and without the script everything works but that.
package console

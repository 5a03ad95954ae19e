package signature_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/pawlhq/pawl/inbox/signature"
)

// A receiver reads the raw body, verifies the sender and recognizes repetitions.
func Example() {
	secret, err := signature.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	secrets := []signature.Secret{secret} // two during a rotation
	var has sync.Map                      // use a database to survive restarts

	receiver := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		id, err := signature.Verify(secrets, r.Header, body, time.Now(), signature.Tolerance)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if _, repeated := has.LoadOrStore(id, true); !repeated {
			fmt.Printf("%s: %s\n", id, body)
		}
		w.WriteHeader(http.StatusNoContent)
	})

	send := func(body string, secret signature.Secret) {
		r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
		signature.Sign([]signature.Secret{secret}, r.Header, "m-1", time.Now(), []byte(body))
		w := httptest.NewRecorder()
		receiver.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	send(`{"paid":true}`, secret)
	send(`{"paid":true}`, secret) // a repetition
	send(`{"paid":true}`, signature.NewSecret())
	// Output:
	// m-1: {"paid":true}
	// 204
	// 204
	// 401
}

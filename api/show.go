package api

import "net/http"

// show is the handler of what is found and answered as JSON.
func show[T any](find func(*API, *request) (T, error)) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		found, err := find(a, r)
		if err != nil {
			return err
		}
		return sendJSON(w, http.StatusOK, found)
	}
}

// answered is the handler of a change that a body asks for; what it returns is
// answered as JSON.
func answered[B, T any](do func(*API, *request, B) (T, error)) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		return show(func(a *API, r *request) (out T, err error) {
			in, err := readJSON[B](a, w, r)
			if err != nil {
				return out, err
			}
			return do(a, r, in)
		})(a, w, r)
	}
}

// done is the handler of a change that a body asks for, and that says no more than that
// it is done.
func done[B any](do func(*API, *request, B) error) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		in, err := readJSON[B](a, w, r)
		if err == nil {
			err = do(a, r, in)
		}
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
}

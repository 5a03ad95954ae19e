package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/workflow"
)

// documents are what machines read of the interface. They are made when one is first asked for: the workflows of a node are
// those that it began with.
type documents struct {
	routes            []Route
	once              sync.Once
	err               error
	openAPI, asyncAPI document
}

// document is one with its entity tag.
type document struct {
	tag  string
	body []byte
}

func documentOf(body []byte) document {
	hash := sha256.Sum256(body)
	return document{tag: `"` + hex.EncodeToString(hash[:16]) + `"`, body: body}
}

func (a *API) documents() (*documents, error) {
	d := &a.contract
	d.once.Do(func() {
		var body []byte
		if body, d.err = openAPI(a.public, d.routes, a.engine.Workflows(), a.local); d.err != nil {
			return
		}
		d.openAPI = documentOf(body)
		if body, d.err = asyncAPI(a.public, a.engine.Workflows()); d.err == nil {
			d.asyncAPI = documentOf(body)
		}
	})
	if d.err != nil {
		return nil, &workflow.Error{Code: workflow.Internal, Message: "the interface cannot be described", Cause: d.err}
	}
	return d, nil
}

// described is the handler of a document.
func described(which func(*documents) document) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		d, err := a.documents()
		if err == nil {
			one := which(d)
			sendTagged(w, r.with(headerNoneMatch), one.tag, one.body)
		}
		return err
	}
}

// page is the handler of a file of the page that people read. Its policy lets the browser load that page's own files, ask
// this server, and nothing else; the renderer writes styles into its elements.
func page(file, media string) handler {
	return func(_ *API, w http.ResponseWriter, _ *request) error {
		w.Header().Set(headerPolicy, "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		body, err := contract.Page.ReadFile("page/" + file)
		if err != nil {
			return err
		}
		send(w, http.StatusOK, media, body)
		return nil
	}
}

const (
	mediaHTML   = "text/html"
	mediaScript = "text/javascript"
)

package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/pawlhq/pawl/api/internal/contract"
	"github.com/pawlhq/pawl/workflow"
)

// documents are the descriptions of the interface for machines. They are built once: the workflows of a node do not change.
type documents struct {
	routes            []Route
	once              sync.Once
	background        sync.WaitGroup
	builds            atomic.Int32
	err               error
	openAPI, asyncAPI document
}

// document is a text in memory only as gzip: that of hundreds of workflows has megabytes, most of them repetitions.
type document struct {
	hash   string
	size   int // of the text
	packed []byte
}

func documentOf(body []byte) (document, error) {
	hash := sha256.Sum256(body)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	return document{hash: hex.EncodeToString(hash[:16]), size: len(body), packed: packed.Bytes()}, err
}

// Start builds the documents of the interface in the background, so that the first request does not wait for them. It is optional.
func (a *API) Start() {
	a.contract.background.Go(func() { _, _ = a.documents() })
}

func (a *API) documents() (*documents, error) {
	d := &a.contract
	d.once.Do(func() {
		d.builds.Add(1)
		defer func() {
			if v := recover(); v != nil {
				d.err = fmt.Errorf("panic: %v", v)
			}
		}()
		d.err = d.build(a.public, a.engine.Read().Workflows(), a.local)
	})
	if d.err != nil {
		return nil, &workflow.Error{Code: workflow.Internal, Message: "the interface cannot be described", Cause: d.err}
	}
	return d, nil
}

func (d *documents) build(public publicURL, workflows []*workflow.Workflow, open bool) error {
	body, err := openAPI(public, d.routes, workflows, open)
	if err != nil {
		return err
	}
	if d.openAPI, err = documentOf(body); err != nil {
		return err
	}
	if body, err = asyncAPI(public, workflows); err != nil {
		return err
	}
	d.asyncAPI, err = documentOf(body)
	return err
}

// tag returns the entity tag of a representation.
func (d *document) tag(gzipped bool) string {
	if gzipped {
		return `"` + d.hash + `-gzip"`
	}
	return `"` + d.hash + `"`
}

// send answers with the document, as gzip if the caller accepts that.
func (d *document) send(w http.ResponseWriter, r *http.Request) error {
	h, gzipped := w.Header(), acceptsGzip(r)
	h.Add("Vary", "Accept-Encoding")
	if answerUnmodified(w, r, d.tag(gzipped)) {
		return nil
	}
	if gzipped {
		h.Set(headerEncoding, "gzip")
		write(w, http.StatusOK, mediaJSON, d.packed)
		return nil
	}
	text, err := gzip.NewReader(bytes.NewReader(d.packed))
	if err != nil {
		return err
	}
	writeHead(w, http.StatusOK, mediaJSON, d.size)
	if r.Method != http.MethodHead {
		_, _ = io.Copy(w, text) // an error here means that the caller is gone
	}
	return nil
}

// described is the handler of a document.
func described(which func(*documents) document) handler {
	return func(a *API, w http.ResponseWriter, r *request) error {
		d, err := a.documents()
		if err == nil {
			one := which(d)
			err = one.send(w, r.with(headerNoneMatch))
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

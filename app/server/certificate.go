package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Certificate names the files of a certificate, with those that lead to its root, and
// of its key, in PEM.
type Certificate struct{ Cert, Key string }

// lookEvery is how soon a file that has changed is noticed.
const lookEvery = time.Second

// certificates are the TLS certificates of files, which are read again after a change. Unusable files are ignored: while two files are
// replaced, they do not match for a moment.
//
// The files are checked for each connection and each request for their state, so no goroutine is needed.
type certificates struct {
	files Certificate
	log   *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	read     [2]os.FileInfo // the files as current was read
	looked   time.Time
	trouble  string // why the files cannot be used; "" when current is theirs
	failures int64
}

// newCertificates reads the files. Error: they cannot be used.
func newCertificates(files Certificate, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log}
	return c, c.load()
}

// get is for tls.Config.GetCertificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.current, nil
}

// stats is when the certificate ends, and how often new files could not be used.
func (c *certificates) stats() (ends time.Time, failures int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.current.Leaf.NotAfter, c.failures
}

// look reads the files if they have changed. A mistake is told and counted once.
func (c *certificates) look() {
	if time.Since(c.looked) < lookEvery {
		return
	}
	err := c.load()
	switch {
	case err == nil:
		c.trouble = ""
	case err.Error() != c.trouble:
		c.trouble = err.Error()
		c.failures++
		c.log.Error("the new TLS certificate cannot be used; the old one stays", "error", err, "ends", c.current.Leaf.NotAfter)
	}
}

func (c *certificates) load() error {
	c.looked = time.Now()
	var found [2]os.FileInfo
	for i, name := range []string{c.files.Cert, c.files.Key} {
		info, err := os.Stat(name) // before it is read, so that a later change is seen
		if err != nil {
			return err
		}
		found[i] = info
	}
	if same(c.read[0], found[0]) && same(c.read[1], found[1]) {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.files.Cert, c.files.Key, err)
	}
	if pair.Leaf == nil { // a setting of Go's can leave it out
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("%s: %w", c.files.Cert, err)
		}
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		return fmt.Errorf("%s: the certificate has ended at %s", c.files.Cert, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if c.current != nil {
		c.log.Info("serving with a new TLS certificate", "ends", pair.Leaf.NotAfter)
	}
	c.current, c.read = &pair, found
	return nil
}

// same reports whether a file has not changed. Some replace it, some write into it, and
// some have a link lead elsewhere.
func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

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

// Certificate names the files of a certificate chain and its key, in PEM.
type Certificate struct{ Cert, Key string }

// lookEvery is the interval of checks for changed files.
const lookEvery = time.Second

// certificates reloads TLS certificates from changed files. Invalid files are ignored: during a replacement the two files may not match.
//
// The files are checked for each connection and each request for their state, so no goroutine is needed.
type certificates struct {
	files Certificate
	log   *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	read     [2]os.FileInfo // the files of current
	looked   time.Time
	trouble  string // why the files are invalid; "" if current is theirs
	failures int64
}

// newCertificates reads the files. It returns an error if they are invalid.
func newCertificates(files Certificate, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: files, log: log}
	return c, c.load()
}

// get implements tls.Config.GetCertificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.current, nil
}

// stats returns the end of the certificate, and the number of failed reloads.
func (c *certificates) stats() (ends time.Time, failures int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return c.current.Leaf.NotAfter, c.failures
}

// look reloads changed files. It logs and counts an error once.
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
		info, err := os.Stat(name) // before reading, to detect later changes
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
	if pair.Leaf == nil { // depends on a GODEBUG setting
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

// same reports whether a file is unchanged. Programs replace files, write into them, or change links.
func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

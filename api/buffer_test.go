package api_test

import (
	"bytes"
	"sync"
)

// lockedBuffer takes the log of a server.
type lockedBuffer struct {
	mu   sync.Mutex
	b    bytes.Buffer
	told map[string]chan struct{} // by what is waited for
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.b.Write(p)
	l.tell()
	return n, err
}

// says returns a channel that is closed when the text has been written.
func (l *lockedBuffer) says(text string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := make(chan struct{})
	if l.told == nil {
		l.told = map[string]chan struct{}{}
	}
	l.told[text] = told
	l.tell()
	return told
}

func (l *lockedBuffer) tell() {
	for text, told := range l.told {
		if bytes.Contains(l.b.Bytes(), []byte(text)) {
			close(told)
			delete(l.told, text)
		}
	}
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

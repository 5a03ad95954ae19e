package file_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/outbox/sink"
	"github.com/pawlhq/pawl/outbox/sink/file"
	"github.com/pawlhq/pawl/outbox/sink/sinktest"
	"github.com/pawlhq/pawl/transitions"
)

// messages parses lines as received messages. The CloudEvent is also the id.
func messages(lines []byte) []sinktest.Message {
	var list []sinktest.Message
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte{'\n'})
		list = append(list, sinktest.Message{ID: string(line), Body: line})
	}
	return list
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.False(t, err != nil && !errors.Is(err, os.ErrNotExist), err)
	return text
}

func open(t *testing.T, c file.Config) *file.Sink {
	t.Helper()
	s, err := file.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close(t.Context()))
	})
	return s
}

func TestFileConforms(t *testing.T) {
	for name, noSync := range map[string]bool{"synced": false, "unsynced": true} {
		t.Run(name, func(t *testing.T) {
			sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
				folder := filepath.Join(t.TempDir(), "events")
				path := filepath.Join(folder, "events.ndjson")
				rename := func(from, to string) func(*testing.T) {
					return func(t *testing.T) {
						require.NoError(t, os.Rename(from, to))
					}
				}
				require.NoError(t, os.Mkdir(folder, 0o700))
				return sinktest.Fixture{
					Sink:     open(t, file.Config{Path: path, NoSync: noSync}),
					Received: func(t *testing.T) []sinktest.Message { return messages(read(t, path)) },
					Down:     rename(folder, folder+".away"),
					Up:       rename(folder+".away", folder),
				}
			})
		})
	}
}

func TestStreamConforms(t *testing.T) {
	sinktest.Run(t, func(*testing.T) sinktest.Fixture {
		var out bytes.Buffer
		return sinktest.Fixture{
			Sink:     file.NewWriter(&out),
			Received: func(*testing.T) []sinktest.Message { return messages(out.Bytes()) },
		}
	})
}

// event returns an event with a payload, at a position.
func event(position int64, payload string) []transitions.Logged {
	e := transitions.Event{Tenant: "acme", Position: position, Type: "order.place", Instance: uuid.UUID{1}, Payload: []byte(payload)}
	return []transitions.Logged{{Event: e, CloudEvent: e.AppendCloudEvent(nil)}}
}

func mustDeliver(t *testing.T, s sink.Sink, events []transitions.Logged) {
	t.Helper()
	failures := s.Deliver(t.Context(), events)
	require.Nil(t, failures)
}

func TestRotatedFileIsRecreated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	s := open(t, file.Config{Path: path})
	first, second, third := event(1, `1`), event(2, `2`), event(3, `3`)
	mustDeliver(t, s, first)
	require.NoError(t, os.Rename(path, path+".1"))
	mustDeliver(t, s, second)
	require.NoError(t, os.Remove(path))
	mustDeliver(t, s, third)
	got := read(t, path+".1")
	assert.Equalf(t, string(first[0].CloudEvent)+"\n", string(got), "the renamed file has %q", got)
	got = read(t, path)
	assert.Equalf(t, string(third[0].CloudEvent)+"\n", string(got), "the new file has %q", got)
}

func TestIncompleteLineIsTerminated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.ndjson")
	require.NoError(t, os.WriteFile(path, []byte("{\"whole\":true}\n{\"tor"), 0o600))
	e := event(1, `{}`)
	s := open(t, file.Config{Path: path})
	mustDeliver(t, s, e)
	mustDeliver(t, s, e)
	line := string(e[0].CloudEvent) + "\n"
	if got, want := string(read(t, path)), "{\"whole\":true}\n{\"tor\n"+line+line; got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestEventIsOneLine(t *testing.T) {
	var out bytes.Buffer
	mustDeliver(t, file.NewWriter(&out), event(1, "{\n  \"note\":\r\n \"a\\nb\"\n}"))
	got := out.String()
	assert.Truef(t, strings.Count(got, "\n") == 1 && strings.Contains(got, `"note":   "a\nb"`), "got %q", got)
}

// full accepts a number of bytes, then fails.
type full struct {
	bytes.Buffer
	room int
}

func (f *full) Write(b []byte) (int, error) {
	if len(b) > f.room {
		n, _ := f.Buffer.Write(b[:f.room])
		f.room = 0
		return n, errors.New("no space left")
	}
	f.room -= len(b)
	return f.Buffer.Write(b)
}

func TestBrokenStreamLineIsRepeated(t *testing.T) {
	first, second := event(1, `{}`), event(2, `{}`)
	out := &full{room: len(first[0].CloudEvent) + 11}
	s := file.NewWriter(out)
	mustDeliver(t, s, first)
	failures := s.Deliver(t.Context(), second)
	require.Truef(t, failures != nil && failures[0].Kind == sink.Unavailable && strings.Contains(failures[0].Message, "no space left"),
		"failures: %v", failures)
	out.room = 1 << 20
	mustDeliver(t, s, second)
	want := string(first[0].CloudEvent) + "\n" + string(second[0].CloudEvent[:10]) + "\n" + string(second[0].CloudEvent) + "\n"
	assert.Equal(t, want, out.String())
}

func TestFileMustBeRegular(t *testing.T) {
	s := open(t, file.Config{Path: t.TempDir()})
	assert.ErrorContains(t, s.Check(t.Context()), "not a regular file", "check")
	_, err := file.New(file.Config{})
	assert.Error(t, err, "a missing path is not refused")
}

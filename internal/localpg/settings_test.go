package localpg

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArguments(t *testing.T) {
	unsafe := []string{"fsync=off", "synchronous_commit=off", "full_page_writes=off"}
	for _, c := range []struct {
		name       string
		options    Options
		want, lack []string
	}{
		{"lasting", Options{}, []string{"max_connections=200", "port=5433", "unix_socket_directories="}, unsafe},
		{"throw-away", Options{Ephemeral: true}, unsafe, nil},
		{
			"throw-away but safe",
			Options{Ephemeral: true, Settings: map[string]string{"fsync": "on"}},
			[]string{"fsync=on"}, unsafe,
		},
		{
			"own values, except for what keeps the server private",
			Options{Settings: map[string]string{"max_connections": "9", "listen_addresses": "*", "work_mem": "1MB"}},
			[]string{"max_connections=9", "listen_addresses=127.0.0.1", "work_mem=1MB"},
			[]string{"max_connections=200", "listen_addresses=*"},
		},
	} {
		got := arguments("/d", 5433, c.options)
		assert.Truef(t, slices.Equal(got[:2], []string{"-D", "/d"}),
			"%s: begins with %q, by which programs recognise the server", c.name, got[:2])
		for _, setting := range c.want {
			name, _, _ := strings.Cut(setting, "=")
			assert.Equalf(t, setting, last(got, name), "%s: no in %q", c.name, got)
		}
		for _, setting := range c.lack {
			name, _, _ := strings.Cut(setting, "=")
			assert.NotEqualf(t, setting, last(got, name), "%s in %q", c.name, got)
		}
	}
}

// last returns the value of a setting that counts.
func last(args []string, name string) (setting string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, name+"=") {
			setting = arg
		}
	}
	return setting
}

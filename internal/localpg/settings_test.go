package localpg

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		want    map[string]string // the last value of each setting
	}{
		"lasting":            {Options{}, map[string]string{"max_connections": "200", "port": "5433", "unix_socket_directories": ""}},
		"temporary":          {Options{Ephemeral: true}, map[string]string{"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}},
		"temporary but safe": {Options{Ephemeral: true, Settings: map[string]string{"fsync": "on"}}, map[string]string{"fsync": "on"}},
		"own values, except for what keeps the server private": {
			Options{Settings: map[string]string{"max_connections": "9", "listen_addresses": "*", "work_mem": "1MB"}},
			map[string]string{"max_connections": "9", "listen_addresses": "127.0.0.1", "work_mem": "1MB"}},
	} {
		args := arguments("/d", 5433, c.options)
		assert.Equal(t, []string{"-D", "/d"}, args[:2], name) // programs recognise the server by it
		got := map[string]string{}
		for _, arg := range args[2:] {
			name, value, _ := strings.Cut(arg, "=")
			got[name] = value
		}
		assert.Subset(t, got, c.want, name)
		assert.Equal(t, c.want["synchronous_commit"], got["synchronous_commit"], name)
	}
}

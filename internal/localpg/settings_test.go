package localpg

import (
	"slices"
	"strings"
	"testing"
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
		if !slices.Equal(got[:2], []string{"-D", "/d"}) {
			t.Errorf("%s: begins with %q, by which programs recognise the server", c.name, got[:2])
		}
		for _, setting := range c.want {
			if name, _, _ := strings.Cut(setting, "="); last(got, name) != setting {
				t.Errorf("%s: no %s in %q", c.name, setting, got)
			}
		}
		for _, setting := range c.lack {
			if name, _, _ := strings.Cut(setting, "="); last(got, name) == setting {
				t.Errorf("%s: %s in %q", c.name, setting, got)
			}
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

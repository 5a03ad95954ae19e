package localpg

import (
	"maps"
	"slices"
	"strconv"
)

// arguments builds the command line of the server. Settings go there rather than into postgresql.conf, so that each
// start has the settings it was asked for and nothing of an earlier one.
func arguments(data string, port int, o Options) []string {
	settings := map[string]string{
		"shared_buffers":     "256MB",
		"max_connections":    "200",
		"wal_compression":    "off",
		"max_wal_size":       "4GB",
		"checkpoint_timeout": "15min",
	}
	if !o.durable() {
		settings["max_wal_size"] = "1GB" // it may be in memory
		settings["fsync"] = "off"
		settings["synchronous_commit"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, o.Settings)
	// What keeps the server private is not for the caller to change.
	settings["listen_addresses"] = loopback
	settings["unix_socket_directories"] = ""
	settings["port"] = strconv.Itoa(port)

	args := []string{"-D", data}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

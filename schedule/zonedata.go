package schedule

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"sync"
)

// ZoneData returns the version of the database of time zones, such as "tzdata 2026b". If the system's database does not say it, or the
// system has no database, it is the version of Go.
var ZoneData = sync.OnceValue(func() string {
	for _, path := range []string{"/usr/share/zoneinfo/tzdata.zi", "/usr/share/zoneinfo/+VERSION"} {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		line, err := bufio.NewReader(file).ReadString('\n')
		_ = file.Close() // it was only read
		if version := strings.TrimSpace(strings.TrimPrefix(line, "# version ")); err == nil && version != "" && len(version) < 40 {
			return "tzdata " + version
		}
	}
	return "tzdata of " + runtime.Version()
})

package replay

import (
	"bytes"
	"os"
	"runtime/metrics"
	"strconv"
)

// peakMemory is the most memory that this process has had, in bytes: what the
// system says where it says it (Linux), else what the Go runtime has from it now.
func peakMemory() uint64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, found := bytes.Cut(status, []byte("VmHWM:")); found {
			fields := bytes.Fields(rest)
			if kib, err := strconv.ParseUint(string(fields[0]), 10, 64); err == nil {
				return kib << 10
			}
		}
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

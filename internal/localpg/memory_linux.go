package localpg

import "syscall"

const (
	inMemory     = "/dev/shm"
	roomInMemory = 4 << 30    // what the tests of a whole run need at once, several times
	typeOfTmpfs  = 0x01021994 // TMPFS_MAGIC of linux/magic.h
)

// memoryFolder names the folder of the system's file system in memory; "" if there is none, or too little room.
func memoryFolder() string {
	var about syscall.Statfs_t
	if err := syscall.Statfs(inMemory, &about); err != nil || about.Type != typeOfTmpfs {
		return ""
	}
	if about.Bavail*uint64(about.Bsize) < roomInMemory {
		return ""
	}
	return inMemory
}

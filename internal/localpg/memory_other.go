//go:build !linux

package localpg

// memoryFolder names the folder of the system's file system in memory: "", there is none.
func memoryFolder() string { return "" }

//go:build !linux

package localpg

import "syscall"

// dieWithParent does nothing: only Linux has such a signal. The next throw-away server ends left-over ones.
func dieWithParent(*syscall.SysProcAttr) {}

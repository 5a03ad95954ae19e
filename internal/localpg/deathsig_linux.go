package localpg

import "syscall"

// dieWithParent has the kernel tell the child to shut down at once when the thread that started it ends.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

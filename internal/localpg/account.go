package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the unprivileged user that PostgreSQL runs as when we are root, because PostgreSQL refuses to run as root.
// A nil account means ourselves.
type account struct {
	name     string
	uid, gid int
}

// serverAccount chooses the account: the owner of the data folder if there is one already, else postgres, else nobody.
func serverAccount(dataDir string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	info, err := os.Stat(dataDir)
	switch {
	case err == nil:
		if uid, gid := ownerOf(info); uid != 0 {
			return &account{fmt.Sprintf("uid %d", uid), uid, gid}, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("look at the data folder: %w", err)
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		return &account{name, uid, gid}, errors.Join(uidErr, gidErr)
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody " +
		"to run it as: run as a normal user, or set DATABASE_URL")
}

// own gives the file or folder to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Lchown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("give %s to %s: %w", path, a.name, err)
	}
	return nil
}

// runs makes the command run as the account, in a session of its own so that a Ctrl-C in the terminal is not sent to it.
func (a *account) runs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
}

// reaches reports the first folder on the way to dir that the account may not enter. It reads the permission bits only.
func (a *account) reaches(dir string) error {
	if a == nil {
		return nil
	}
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("look at %s: %w", d, err)
		}
		need := fs.FileMode(0o001)
		switch uid, gid := ownerOf(info); {
		case uid == a.uid:
			need = 0o100
		case gid == a.gid:
			need = 0o010
		}
		if info.Mode().Perm()&need == 0 {
			return fmt.Errorf("PostgreSQL runs as %s, who may not enter %s: choose another folder, or allow it with "+
				"chmod o+x", a.name, d)
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}

// ownerOf reads the numeric owner and group of a file.
func ownerOf(info fs.FileInfo) (uid, gid int) {
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}

package localpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// prepare makes sure that there is a data folder to start a server on.
func (s *Server) prepare(ctx context.Context, o Options, bin binaries, log logger) error {
	if o.Ephemeral {
		// A lock file without a server: it was not shut down in order, and without fsync nobody knows what it left.
		if _, err := os.Stat(pidFile(s.data())); err == nil {
			log("removing the data of a throw-away server that was not shut down in order")
			if err := os.RemoveAll(s.data()); err != nil {
				return fmt.Errorf("remove the old data folder: %w", err)
			}
		}
	}
	if _, err := os.Stat(s.data()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	log("creating a PostgreSQL %s data folder in %s", bin.version, s.home)
	if err := s.initialise(ctx, o, bin); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	return nil
}

// initialise makes the data folder under another name and renames it when it is complete, so that a program killed
// half-way leaves nothing that looks like one.
func (s *Server) initialise(ctx context.Context, o Options, bin binaries) error {
	fresh, password := s.path("data.new"), s.path("password")
	err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o700), writePassword(password), s.account.own(fresh), s.account.own(password))
	if err != nil {
		return err
	}
	args := []string{"-D", fresh, "-U", role, "--pwfile", password, "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"}
	if o.Ephemeral {
		args = append(args, "--no-sync")
	}
	cmd := s.command(exec.CommandContext(ctx, bin.path("initdb"), args...))
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // its helpers too
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w; it says:\n%s", err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, s.data())
}

// writePassword writes a new password to the file, which only its owner may read.
func writePassword(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(rand.Text() + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

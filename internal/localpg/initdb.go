package localpg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	_, err := os.Stat(s.data())
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the data folder: %w", err)
	}
	log("creating a PostgreSQL %s data folder in %s", bin.version, s.home)
	if !s.private {
		s.mentionOthers(log)
	}
	return s.initialise(ctx, o, bin)
}

// mentionOthers says where the data of other versions is, which somebody who has just upgraded may miss.
func (s *Server) mentionOthers(log logger) {
	others, err := filepath.Glob(filepath.Join(filepath.Dir(s.home), "[0-9]*", "data"))
	if err != nil {
		return // a name that is not a pattern; this is a courtesy
	}
	for _, data := range others {
		log("the data of another version stays in %s", filepath.Dir(data))
	}
}

// initialise makes the data folder under another name and renames it when it is complete, so that a program killed
// half-way leaves nothing that looks like one.
func (s *Server) initialise(ctx context.Context, o Options, bin binaries) error {
	fresh := s.path("data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove a half-made data folder: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	if err := s.account.own(fresh); err != nil {
		return err
	}
	password := rand.Text()
	if err := s.initdb(ctx, fresh, password, o, bin); err != nil {
		return err
	}
	if err := writePassword(s.path("password"), password); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.data()); err != nil {
		return fmt.Errorf("put the data folder in place: %w", err)
	}
	return nil
}

// initdb runs the program of that name, which takes the password from a file that the server's account can read.
func (s *Server) initdb(ctx context.Context, data, password string, o Options, bin binaries) (err error) {
	const handover = "password.initdb"
	if err := os.Remove(s.path(handover)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old password file: %w", err)
	}
	if err := writePassword(s.path(handover), password); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(s.path(handover))) }()
	if err := s.account.own(s.path(handover)); err != nil {
		return err
	}
	args := []string{"-D", data, "-U", role, "--pwfile", s.path(handover), "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"}
	if o.Ephemeral {
		args = append(args, "--no-sync")
	}
	cmd := s.command(exec.CommandContext(ctx, bin.path("initdb"), args...))
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // its helpers too
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("create the data folder with initdb: %w; it says:\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// writePassword replaces the file, which only its owner may read.
func writePassword(path, password string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "password.")
	if err != nil {
		return fmt.Errorf("write the password: %w", err)
	}
	_, err = file.WriteString(password + "\n")
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the password: %w", err), os.Remove(file.Name()))
	}
	return nil
}

func readPassword(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the server's password: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

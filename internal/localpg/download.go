package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// download gets PostgreSQL as the binaries that the embedded-postgres project builds for Linux and macOS.
type download struct {
	dir        string // the binaries end up in dir/version/bin
	repository string // base URL of another Maven repository, or empty
}

// downloadVersion is the newest that Pawl supports and the library knows.
const downloadVersion = embedded.V18

// fetch downloads and unpacks into a temporary folder, which it then renames, so that what is found under its final
// name is complete.
func (d download) fetch(ctx context.Context, log logger) (err error) {
	if err := context.Cause(ctx); err != nil { // the library knows no context: it can only be kept from starting
		return err
	}
	log("no PostgreSQL here: downloading version %s", downloadVersion)
	temp, err := os.MkdirTemp(d.dir, "new-")
	if err != nil {
		return fmt.Errorf("download PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	fresh := filepath.Join(temp, "postgres")
	if err := d.unpack(ctx, temp, fresh); err != nil {
		return fmt.Errorf("download PostgreSQL %s: %w", downloadVersion, err)
	}
	final := filepath.Join(d.dir, string(downloadVersion))
	// What has the name is unusable, or we would not be here. The server's account must be able to enter the new one.
	return errors.Join(os.RemoveAll(final), os.Chmod(fresh, 0o755), os.Rename(fresh, final))
}

// unpack has the library fetch the binaries into the folder target. The library has no call for that alone: its Start
// goes on to create a data folder and to run a server, with its own ideas of both, and as root it could do neither. So
// it is given a data folder that has a version and nothing else, which it takes for one to use as it is. The start then
// fails, always, after the binaries are there; what counts is whether they work.
func (d download) unpack(ctx context.Context, temp, target string) error {
	data := filepath.Join(temp, "data")
	err := errors.Join(os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(downloadVersion), 0o600))
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	config := embedded.DefaultConfig().
		Version(downloadVersion).
		CachePath(temp).
		RuntimePath(filepath.Join(temp, "run")).
		BinariesPath(target).
		DataPath(data).
		Port(uint32(port)).
		Logger(io.Discard)
	if d.repository != "" {
		config = config.BinaryRepositoryURL(d.repository)
	}
	pg := embedded.NewDatabase(config)
	startErr := pg.Start()
	if startErr == nil {
		return errors.Join(errors.New("a server started on an empty data folder"), pg.Stop())
	}
	bin := filepath.Join(target, "bin")
	if _, err := os.Stat(filepath.Join(bin, "postgres")); err != nil {
		return startErr
	}
	_, err = inspect(ctx, bin)
	return err
}

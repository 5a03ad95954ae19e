package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// EnvInstall names the environment variable that allows to install PostgreSQL from the system's packages when there is
// none, by not being empty. Without it nobody's program changes the machine: the binaries are downloaded.
const EnvInstall = "PAWL_PG_INSTALL"

// apt installs PostgreSQL from the packages of Debian, Ubuntu and their relatives, which needs root, and to be asked for.
type apt struct {
	clusterConfig string // the folder whose *.conf files pg_createcluster reads
}

func (apt) usable() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0 && os.Getenv(EnvInstall) != ""
}

// fetch keeps the package from creating and starting a server of its own, by the setting that its maintainers provide for
// that. The setting is taken back afterwards: what the machine's owner installs later is not our business.
func (a apt) fetch(ctx context.Context, log logger) (err error) {
	log("no PostgreSQL here: installing the package postgresql with apt-get")
	path := filepath.Join(a.clusterConfig, "pawl.conf")
	const content = "# Written while Pawl installs PostgreSQL, and removed afterwards.\ncreate_main_cluster = false\n"
	if err := errors.Join(os.MkdirAll(a.clusterConfig, 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		return fmt.Errorf("configure the package postgresql: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if err := aptGet(ctx, "update"); err != nil {
		log("going on with the package lists that are here: %v", err)
	}
	return aptGet(ctx, "install", "-y", "--no-install-recommends", "postgresql")
}

// aptGet runs apt-get without questions. When ctx is cancelled it is interrupted, and given time to leave the packages
// in order.
func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w; it says:\n%s", strings.Join(args, " "), err, lastPart(out))
	}
	return nil
}

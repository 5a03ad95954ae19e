package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
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

var systemPackages = apt{clusterConfig: "/etc/postgresql-common/createcluster.d"}

func (apt) usable() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0 && os.Getenv(EnvInstall) != ""
}

func (a apt) fetch(ctx context.Context, log logger) (err error) {
	log("no PostgreSQL here: installing the package postgresql with apt-get")
	restore, err := a.withoutCluster()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	if err := aptGet(ctx, "update"); err != nil {
		log("going on with the package lists that are here: %v", err)
	}
	return aptGet(ctx, "install", "-y", "--no-install-recommends", "postgresql")
}

// withoutCluster keeps the package from creating and starting a server of its own, by the setting that its maintainers
// provide for that. The setting is taken back afterwards: what the machine's owner installs later is not our business.
func (a apt) withoutCluster() (restore func() error, err error) {
	if err := os.MkdirAll(a.clusterConfig, 0o755); err != nil {
		return nil, fmt.Errorf("configure the package postgresql: %w", err)
	}
	path := filepath.Join(a.clusterConfig, "pawl.conf")
	const content = "# Written while Pawl installs PostgreSQL, and removed afterwards.\ncreate_main_cluster = false\n"
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		return nil, fmt.Errorf("configure the package postgresql: %w", err)
	}
	return func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take back the configuration of the package postgresql: %w", err)
		}
		return nil
	}, nil
}

// aptGet runs apt-get without questions. When ctx is cancelled it is interrupted, and given time to leave the packages
// in order.
func aptGet(ctx context.Context, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w; it says:\n%s", strings.Join(args, " "), err, lastPart(out.Bytes()))
	}
	return nil
}

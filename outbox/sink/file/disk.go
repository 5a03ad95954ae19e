package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// mode of new files: events are private.
const mode = 0o600

// disk writes to a file.
type disk struct {
	path string
	sync bool

	file *os.File    // nil if not open
	info fs.FileInfo // of the open file; detects a replaced path
	torn bool        // the last line is incomplete
}

func (d *disk) append(lines []byte) error {
	if err := d.open(); err != nil {
		return err
	}
	if d.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	if err := d.write(lines); err != nil {
		return errors.Join(err, d.close()) // open repairs the last line
	}
	d.torn = false
	return nil
}

func (d *disk) write(lines []byte) error {
	if _, err := d.file.Write(lines); err != nil {
		return err // includes the path
	}
	if d.sync {
		return d.file.Sync()
	}
	return nil
}

func (d *disk) check() error { return d.open() }

// open ensures that the open file is the one at the path.
func (d *disk) open() error {
	found, err := os.Stat(d.path)
	if d.file != nil {
		if err == nil && os.SameFile(found, d.info) {
			return nil
		}
		if err := d.close(); err != nil { // renamed or removed
			return err
		}
	}
	if err == nil && !found.Mode().IsRegular() { // opening a pipe can block
		return fmt.Errorf("%s is not a regular file", d.path)
	}
	file, err := os.OpenFile(d.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, mode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	torn, err := endsTorn(file, info.Size())
	if err != nil {
		return errors.Join(err, file.Close())
	}
	d.file, d.info, d.torn = file, info, torn
	return nil
}

// endsTorn reports whether the last line is incomplete, after a failed write or a killed writer.
func endsTorn(file *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], size-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

func (d *disk) close() error {
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file = nil
	return err
}

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// mode of a new file: events are nobody else's business.
const mode = 0o600

// disk is a file as output.
type disk struct {
	path string
	sync bool

	file *os.File    // nil while none is open
	info fs.FileInfo // of the open file, to tell it from another at its path
	torn bool        // its last line is not whole
}

func (d *disk) append(lines []byte) error {
	if err := d.open(); err != nil {
		return err
	}
	if d.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	if err := d.write(lines); err != nil {
		return errors.Join(err, d.close()) // what it left is looked at when the file is opened again
	}
	d.torn = false
	return nil
}

func (d *disk) write(lines []byte) error {
	if _, err := d.file.Write(lines); err != nil {
		return err // names the file
	}
	if d.sync {
		return d.file.Sync()
	}
	return nil
}

func (d *disk) check() error { return d.open() }

// open makes sure that the open file is the one at the path.
func (d *disk) open() error {
	found, err := os.Stat(d.path)
	if d.file != nil {
		if err == nil && os.SameFile(found, d.info) {
			return nil
		}
		if err := d.close(); err != nil { // it was renamed or removed
			return err
		}
	}
	if err == nil && !found.Mode().IsRegular() { // opening a pipe could wait for ever
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

// endsTorn reports whether a file's last line was never ended: a write failed, or
// whoever wrote was killed.
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

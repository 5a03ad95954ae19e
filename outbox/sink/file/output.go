package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// mode of new files: events are private.
const mode = 0o600

// output writes lines to a file or a stream.
type output struct {
	stream io.Writer // nil: the file at path
	path   string
	sync   bool

	file *os.File    // nil if not open
	info fs.FileInfo // of the open file; detects a replaced path
	torn bool        // the last line is incomplete
}

func (o *output) append(lines []byte) error {
	if err := o.open(); err != nil {
		return err
	}
	if o.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	if o.stream != nil {
		n, err := o.stream.Write(lines)
		if n > 0 {
			o.torn = lines[n-1] != '\n'
		}
		if err != nil {
			err = fmt.Errorf("write: %w", err)
		}
		return err
	}
	_, err := o.file.Write(lines) // the error includes the path
	if err == nil && o.sync {
		err = o.file.Sync()
	}
	if err != nil {
		return errors.Join(err, o.close()) // open repairs the last line
	}
	o.torn = false
	return nil
}

// open ensures that the open file is the one at the path.
func (o *output) open() error {
	if o.stream != nil {
		return nil
	}
	found, err := os.Stat(o.path)
	if o.file != nil {
		if err == nil && os.SameFile(found, o.info) {
			return nil
		}
		if err := o.close(); err != nil { // renamed or removed
			return err
		}
	}
	if err == nil && !found.Mode().IsRegular() { // opening a pipe can block
		return fmt.Errorf("%s is not a regular file", o.path)
	}
	file, err := os.OpenFile(o.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, mode)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	last := [1]byte{'\n'} // the last line is incomplete after a failed write or a killed writer
	if err == nil && info.Size() > 0 {
		_, err = file.ReadAt(last[:], info.Size()-1)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	o.file, o.info, o.torn = file, info, last[0] != '\n'
	return nil
}

func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	o.file = nil
	return err
}

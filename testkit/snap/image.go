package snap

import (
	"errors"
	"fmt"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// ErrBuild means that a module's file is another build than the recorded one.
var ErrBuild = errors.New("another build")

// fill parses a module's image into m, whose build id is the recorded one.
func fill(m *module.Module, data []byte) error {
	f, err := elf.New(data, m.Path)
	if err != nil {
		return err
	}
	if m.BuildID != "" && f.BuildID() != m.BuildID {
		return fmt.Errorf("%w: the file's build id is %q, recorded was %q", ErrBuild, f.BuildID(), m.BuildID)
	}
	*m = module.ELFFromFile(m.ID, f, m.Path, m.Start, m.End, m.Bias)
	return m.Err
}

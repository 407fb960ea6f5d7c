package snap

import (
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/module"
)

// fill parses a module's image into m.
func fill(m *module.Module, data []byte) error {
	f, err := elf.New(data, m.Path)
	if err != nil {
		return err
	}
	*m = module.ELFFromFile(m.ID, f, m.Path, m.Start, m.End, m.Bias)
	return m.Err
}

package snap

import "github.com/seedwalk/seedwalk/module"

// fill parses a module's image into m.
func fill(m *module.Module, data []byte) error {
	return nil
}

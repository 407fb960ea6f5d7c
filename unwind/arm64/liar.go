package arm64

import (
	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/module"
)

// ignoresPLT0 will know the code whose call frame information leaves out what
// PLT0 pushed.
func ignoresPLT0(m *module.Module, f *cfi.FDE) bool { return false }

package amd64

import (
	"github.com/seedwalk/seedwalk/module"
	"github.com/seedwalk/seedwalk/pe"
)

// peTable is a module table of one PE image.
func peTable(im *pe.File, base uint64) *module.Table {
	return module.NewTable(1, []module.Module{{ID: 1, Start: base, End: base + 1<<32 - 1, Bias: base, PE: im}}, nil)
}

package inflow

import (
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Keeper has nothing to do where a file that is mapped cannot be replaced.
func Keeper(options.Namer, int) func(*wire.Module) { return nil }

// Share: on this system a process is in one recording at a time.
func Share(*Process) Sharer { return nil }

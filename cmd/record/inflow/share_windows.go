package inflow

import (
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/report/wire"
)

// Keeper returns nil: on Windows, a mapped file cannot be replaced.
func Keeper(options.Namer, int) func(*wire.Module) { return nil }

// Share returns nil: on Windows, a process is in one recording at a time.
func Share(*Process) Sharer { return nil }

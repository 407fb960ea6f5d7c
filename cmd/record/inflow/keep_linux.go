package inflow

import (
	"strings"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
)

// imageKeeper is a Namer that takes an image while it can be had, for names at the end,
// when its path may lead to another.
type imageKeeper interface {
	Keep(path, buildID string, f *elf.File)
}

// Keeper gives a process's native images to a Namer that keeps them, as the process
// tells of them: a library can be replaced, or deleted, while it runs.
func Keeper(n options.Namer, pid int) func(m *wire.Module) {
	k, ok := n.(imageKeeper)
	if !ok {
		return nil
	}
	maps, _ := n.(interface{ KeepPerfMap(pid int) bool }) // opens it while the process runs
	return func(m *wire.Module) {
		if maps != nil && maps.KeepPerfMap(pid) {
			maps = nil
		}
		if !strings.HasPrefix(m.Path, "/") || live.IsPE(m.Path) {
			return
		}
		if f := live.OpenImage(pid, m.Path, m.BuildID); f != nil {
			k.Keep(m.Path, m.BuildID, f)
		}
	}
}

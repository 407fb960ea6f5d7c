package inflow

import (
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/report/wire"
)

// imageKeeper is a Namer that keeps open images for the names at the end, when their paths may be those
// of other files.
type imageKeeper interface {
	Keep(path, buildID string, f *elf.File)
}

// mapEvery is the shortest time between two searches for the perf map: a process reports many modules at
// once.
const mapEvery = 10 * time.Millisecond

// Keeper returns a function that passes a native image of the process to n as soon as the process
// reports it: a library can be replaced or deleted while it runs. Keeper returns nil if n keeps no
// images.
func Keeper(n options.Namer, pid int) func(m *wire.Module) {
	k, ok := n.(imageKeeper)
	if !ok {
		return nil
	}
	maps, _ := n.(interface{ KeepPerfMap(pid int) bool }) // opens it while the process runs
	var tried time.Time
	return func(m *wire.Module) {
		if maps != nil && time.Since(tried) >= mapEvery {
			if maps.KeepPerfMap(pid) {
				maps = nil
			}
			tried = time.Now()
		}
		if f := live.OpenImage(pid, m.Path, m.BuildID); f != nil {
			k.Keep(m.Path, m.BuildID, f)
		}
	}
}

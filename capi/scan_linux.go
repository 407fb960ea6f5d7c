//go:build cgo

package main

import (
	"os"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/agent"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// newScanner reads this process's mappings.
func (in *instance) newScanner() scanner {
	loader := live.NewLoader(0)
	return func() *module.Table {
		maps, err := live.Maps(0)
		if err != nil {
			return nil
		}
		return loader.Table(maps)
	}
}

// newCode returns no reader: no seed of a walk reaches the CLR (see merging), so a check would cost time.
func newCode() memory.Reader { return nil }

// tables are the code tables that the runtime publishes.
type tables struct{ contracts agent.Contracts }

// found looks for a runtime in a new module table.
func (t *tables) found(in *instance) {
	t.contracts.Memory = func() (memory.Reader, error) { return live.OpenProcess(os.Getpid()) }
	t.contracts.Find(in.table)
}

// clear drops the list of modules without a runtime; the process's own runtime stays.
func (t *tables) clear() { t.contracts.Forget() }

// merging passes the CLR's report to the tables, which it verifies. They do not check seeds as on Windows,
// because no seed of a walk reaches the CLR on Linux: it ignores those of other threads, which are all in
// preemptive mode after SuspendRuntime. From a thread that walks itself, it takes only its own registers.
func (t *tables) merging(in *instance) { t.contracts.Learn(in.merger, &in.capture) }

package sched

// Prune says which states count as seen before.
type Prune uint8

const (
	PruneNone     Prune = iota // every interleaving is run to its end
	PruneObserved              // actors Observe what they read and keep
	PruneSeen                  // sound for any actor: each step takes in World.Hash; merges less
)

// ExploreOptions bounds an exploration. The zero value explores everything
// there is, on one worker.
type ExploreOptions struct {
	Options
	Prune       Prune
	StopAtFirst bool // at the first run that is not Done
	MaxRuns     int  // runs, complete or cut, after which it gives up; 0 is no bound
	Workers     int  // 0 is 1; more call build from several goroutines at once
	Split       int  // choices that make a share of the work; 0 is 3, or none under Prune
}

// Report is what an exploration found. It does not depend on Workers.
type Report struct {
	Interleavings int // complete runs
	Pruned        int // runs cut at a state seen before
	States        int // states told apart, under Prune
	MaxDepth      int // steps of the longest run
	Done          int
	Deadlocks     int
	Faults        int
	StepLimits    int
	First         *Result // the first run that is not Done, traced; nil if none
	Exhausted     bool    // there is no other schedule within the bounds
}

type explorer struct{ opt ExploreOptions }

func (e *explorer) seen(w *World) bool { return false }

// Explore runs build's world under every schedule within the bounds.
func Explore(opt ExploreOptions, build func(w *World)) Report { return Report{} }

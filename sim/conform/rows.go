package conform

import (
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// Row is a row of the decision table of DoStackSnapshot, or a rule of the walk that follows. The
// rows come from the sources of the real CLRs.
type Row struct {
	N       string
	Results []clr.HRESULT // possible results of a call that this row decides; nil: a later row decides
	Fates   []string      // or the possible ends of the process
	Of      string        // only cases whose names contain this text always reach the row
	Why     string        // reason why no profiler provokes the row, "" if one does
	In      func(v vm.Variant) bool
	WhyIn   string // reason why it is not provoked on variants for which In is false; "": they lack the row
}

const (
	noRow    = "no such row there"
	lookup   = "who writes the code table holds its lock for the insertion into a list, calls nobody back meanwhile and forbids its own suspension (codeman.cpp, WriterLockHolder)"
	stopped  = "after SuspendRuntime every thread is in preemptive mode, and before it row 11u answers"
	noDetach = "RequestProfilerDetach is not in .NET Core before 3.0: see case detaching.detach"
)

// Rows is the specification: the table from its first row, then the walk.
var Rows = []Row{
	{N: "1", Results: one(clr.CORPROF_E_PROFILER_DETACHING), In: modern, WhyIn: noDetach},
	{N: "2", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: every},
	{N: "3", Results: one(clr.CORPROF_E_INCONSISTENT_WITH_FLAGS), In: every},
	{N: "4", In: every},
	{N: "5", Results: one(clr.E_INVALIDARG), In: every},
	{N: "6", Results: one(clr.S_OK), In: every},
	{N: "7", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: every},
	{N: "8", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: every},
	{N: "9", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: every},
	{N: "10", Fates: []string{"the process ends with 8013135e"}, In: windows},
	{N: "11", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: windows,
		Fates: []string{"the process ends with 80131506"}}, // .NET 10
	{N: "11u", Results: one(clr.E_NOTIMPL), In: unix},
	{N: "12", In: every},
	{N: "13u", Results: one(clr.E_NOTIMPL), In: unix, Why: stopped},
	{N: "13", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: windows},
	{N: "14a", Results: one(clr.CORPROF_E_ASYNCHRONOUS_UNSAFE), In: windows, Why: lookup},
	{N: "14b", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: windows},
	{N: "15", In: windows},
	{N: "16a", Results: one(clr.CORPROF_E_ASYNCHRONOUS_UNSAFE), In: every, Why: lookup},
	{N: "16", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX), In: every},
	{N: "17", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX), In: every},
	{N: "18", Results: one(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE), In: every,
		Why: "the flag stands from the end of a second pass to the resumption, in which nobody is called back (exceptionhandling.cpp, FinishSecondPass)"},
	{N: "a", In: every},
	{N: "b", In: every},
	{N: "c", In: every, Of: "nested"}, // a delegate is marshalled: there is an IL stub for certain
	{N: "d", In: every},
	{N: "e", In: every},
	{N: "f", In: every},
	{N: "g", Results: one(clr.E_FAIL), In: every},
	{N: "h", Results: one(clr.E_FAIL), In: windows,
		WhyIn: "THREAD_IS_SUSPENDED is not set when the profiler has suspended the runtime, and off Windows no other thread is walked without that"},
	{N: "i", Results: one(clr.E_FAIL), In: every},
	{N: "j", In: every},
	{N: "k", Results: []clr.HRESULT{clr.CORPROF_E_STACKSNAPSHOT_ABORTED, clr.E_UNEXPECTED}, In: every,
		Fates: []string{"the process ends with 80131506", "the process ends with segmentation fault"}},
	{N: "l", In: every},
	{N: "m", In: every, Why: "frameInfo is an address, and what it is worth after the callback shows in no answer (reference of StackSnapshotCallback)"},
}

func one(hr clr.HRESULT) []clr.HRESULT { return []clr.HRESULT{hr} }

// When is what the row is about, in the words of the simulated CLR.
func (r *Row) When() string {
	for i := range vm.Table {
		if vm.Table[i].N == r.N {
			return vm.Table[i].When
		}
	}
	return "walk rule " + r.N
}

// Allows reports whether a call that the row has decided may answer a.
func (r *Row) Allows(a Answer) bool {
	switch {
	case r.Results == nil && r.Fates == nil:
		return true // others decide
	case a.Fate != "":
		return slices.Contains(r.Fates, a.Fate)
	}
	return slices.Contains(r.Results, a.Result)
}

// Reason is why the row is not provoked on v, "" if it is to be.
func (r *Row) Reason(v vm.Variant) string {
	switch {
	case r.In(v):
		return r.Why
	case r.WhyIn != "":
		return r.WhyIn
	}
	return noRow
}

// Provokes reports whether a case that used the given rows gets to r for certain.
func (r *Row) Provokes(c Case, used []string) bool {
	return slices.Contains(used, r.N) && strings.Contains(c.Name, r.Of)
}

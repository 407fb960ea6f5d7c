// Package conform makes the same scripted calls of the profiling API on a real
// CLR and on the simulated one, and compares the answers.
//
// Sources: facts measured on the real runtimes; profiler/testdata/conform.c,
// which makes the calls there, and Conform.cs, the program it is loaded into.
//
// Glossary. A *case* is one call. Its *caller* says who makes it and where; its
// *target* is a role: a thread that stands somewhere known. A *pattern* has M for
// a run of managed frames and U for each marker.
//
// Strategy. The script is data. The profiler receives it as lines, and the simulation reads the
// same data, so both sides make the same calls. HRESULT, pattern, and context size must be
// equal. Every difference must be explained by name.
//
// Known gaps: the number of managed frames depends on the program and is not compared. Some rows
// cannot be provoked in a real program, so only sim/vm tests them. Rows lists them with reasons.
package conform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim/vm"
)

// Case is one scripted call.
type Case struct {
	Name   string
	Run    Run
	Caller string // who calls, and where: see conform.c
	Verb   string // dss, suspend, resume, detach
	Target string // a role, or zero
	Flags  uint32
	Seed   string // none, own, zero, wild-ip, native-ip, wild-sp, other-sp, odd-ips
	Stop   int    // the callback, from 1, that returns Answer; 0: none
	Answer clr.HRESULT
	In     func(v vm.Variant) bool
}

// Run is a process: what its profiler asks for, and what the program does.
type Run struct {
	Name string
	Mask uint32 // event mask
	Mode string // argument of Conform.exe
	// Dies means that the process does not survive: it hangs, or ends with an error.
	Dies bool
}

// Event masks: threads, ENABLE_STACK_SNAPSHOT, and with everything exceptions,
// collections, suspensions and allocated objects.
const (
	maskThreads  = 0x00000200
	maskSnapshot = 0x10000200
	maskAll      = 0x108103c0
)

// The processes of the script.
var (
	whole  = Run{Name: "whole", Mask: maskAll}
	noMask = Run{Name: "no-flag", Mask: maskThreads}
	detach = Run{Name: "detach", Mask: maskSnapshot, Mode: "detach"}
	trap   = Run{Name: "trap",
		Mask: maskSnapshot, Mode: "spin"} // threads are always in exception or service handling
	twice = Run{Name: "twice", Mask: maskSnapshot, Dies: true}
	dead  = Run{Name: "dead", Mask: maskSnapshot, Mode: "dead", Dies: true}
	wild  = Run{Name: "wild", Mask: maskAll, Dies: true}
	odd   = Run{Name: "odd", Mask: maskSnapshot, Dies: true}
	crowd = Run{Name: "crowd", Mask: maskSnapshot, Dies: true}
)

// Runs lists them.
func Runs() []Run { return []Run{whole, noMask, detach, trap, twice, dead, wild, odd, crowd} }

func every(vm.Variant) bool     { return true }
func windows(v vm.Variant) bool { return v.Windows() }
func modern(v vm.Variant) bool  { return v.HasSuspendRuntime() }
func unix(v vm.Variant) bool    { return !v.Windows() }
func old(v vm.Variant) bool     { return !v.HasSuspendRuntime() }

func windowsModern(v vm.Variant) bool { return v.Windows() && v.HasSuspendRuntime() }

// dss is a plain call of DoStackSnapshot.
func dss(run Run, caller, name, target string, flags uint32) Case {
	return Case{Name: caller + "." + name, Run: run, Caller: caller, Verb: "dss", Target: target,
		Flags: flags, Seed: "none", In: every}
}

func (c Case) seed(s string) Case { c.Seed = s; return c }

func (c Case) stop(n int, hr clr.HRESULT) Case { c.Stop, c.Answer = n, hr; return c }

func (c Case) in(f func(v vm.Variant) bool) Case { c.In = f; return c }

// runtime is a call of SuspendRuntime or ResumeRuntime.
func runtime(run Run, caller, verb string) Case {
	return Case{Name: caller + "." + verb, Run: run, Caller: caller, Verb: verb,
		Target: "zero", Seed: "none", In: modern}
}

// places are the roles that stand somewhere.
var places = []string{"spin", "sleep", "nested", "wait", "finally", "filter", "catch", "idle"}

// Script lists the cases of a variant.
func Script(v vm.Variant) (out []Case) {
	all := fixed()
	for _, role := range places {
		all = append(all,
			dss(whole, "sampler", role, role, 1),
			dss(whole, "suspended", role, role, 1).in(modern),
			dss(whole, "held", role, role, 1).in(windows),
		)
	}
	for _, c := range all {
		if c.In(v) {
			out = append(out, c)
		}
	}
	return out
}

func fixed() []Case {
	return slices.Concat(fixedAlone(), fixedMeanwhile(), fixedStopped(), fixedAgainst())
}

// fixedAlone are calls while nothing else runs: before the start, in a walk, in an
// exception, by a thread of another.
func fixedAlone() []Case {
	return []Case{
		// Before the start of the execution engine, without an event mask.
		dss(whole, "initialize", "zero", "zero", 0),
		dss(whole, "initialize", "flags", "zero", 2),
		runtime(whole, "initialize", "suspend"),
		runtime(whole, "initialize", "resume"),
		// A thread's own walk, in preemptive mode.
		dss(whole, "pinvoke", "zero", "zero", 1),
		dss(whole, "pinvoke", "id", "self", 1),
		dss(whole, "pinvoke", "no-context", "zero", 0),
		dss(whole, "pinvoke", "flags", "zero", 2),
		dss(whole, "pinvoke", "zero-seed", "zero", 1).seed("zero"),
		dss(whole, "pinvoke", "wild-seed", "zero", 1).seed("wild-ip"),
		dss(whole, "pinvoke", "abort", "zero", 1).stop(2, clr.S_FALSE),
		dss(whole, "pinvoke", "other", "sleep", 1),
		// The same in cooperative mode.
		dss(whole, "allocation", "none", "zero", 1),
		dss(whole, "allocation", "own-seed", "zero", 1).seed("own"),
		dss(whole, "allocation", "zero-seed", "zero", 1).seed("zero"),
		dss(whole, "allocation", "wild-seed", "zero", 1).seed("wild-ip"),
		dss(whole, "allocation", "native-seed", "zero", 1).seed("native-ip"),
		dss(whole, "allocation", "wild-sp", "zero", 1).seed("wild-sp").in(windows),
		dss(whole, "allocation", "other-sp", "zero", 1).seed("other-sp"),
		// In an exception's callbacks.
		dss(whole, "thrown", "zero", "zero", 1),
		dss(whole, "search", "zero", "zero", 1),
		dss(whole, "unwind", "zero", "zero", 1),
		dss(whole, "finally", "zero", "zero", 1),
		dss(whole, "catcher", "zero", "zero", 1),
		// Of a thread that is in a walk of its own.
		dss(whole, "busy", "self", "self", 1),
		dss(whole, "busy", "flags", "self", 2),
	}
}

// fixedMeanwhile are calls during suspensions and collections, and by threads without
// managed code.
func fixedMeanwhile() []Case {
	return []Case{
		// While the runtime is being suspended, which waits for a thread that does
		// not come to a safe point.
		dss(whole, "suspending", "zero", "zero",
			1).in(unix), // under Wine it waits for the end of the suspension
		dss(whole, "suspending", "other", "sleep", 1),
		runtime(whole, "suspending", "suspend"),
		// Before a collection: when its thread says that it is suspended, and when
		// all are.
		dss(whole, "thread-suspend", "zero", "zero", 1),
		dss(whole, "forbidden", "other", "self", 1),
		dss(whole, "suspend-end", "zero", "zero", 1),
		dss(whole, "suspend-end", "other", "sleep", 1),
		// At the start of a collection: by whoever collects, and meanwhile.
		dss(whole, "collector", "zero", "zero", 1),
		dss(whole, "collector", "other", "sleep", 1),
		runtime(whole, "collector", "suspend"),
		dss(whole, "collecting", "collector", "self", 1),
		dss(whole, "collecting", "other", "sleep", 1),
		dss(whole, "collecting", "redirected", "spin", 1),
		runtime(whole, "collecting", "suspend"),
		runtime(whole, "collecting", "resume"),
		// By a thread that never ran managed code.
		dss(whole, "sampler", "zero", "zero", 1),
		dss(whole, "sampler", "zero-flags", "zero", 2),
		dss(whole, "sampler", "flags", "sleep", 2),
		dss(whole, "sampler", "wild-seed", "sleep", 1).seed("wild-ip"),
		dss(whole, "sampler", "no-context", "sleep", 0),
		dss(whole, "sampler", "abort", "sleep", 1).stop(2, clr.S_FALSE),
		runtime(whole, "sampler", "resume"),
	}
}

// fixedStopped are calls while the runtime or one thread is suspended.
func fixedStopped() []Case {
	return []Case{
		// With the runtime stopped.
		dss(whole, "suspended", "zero", "zero", 1).in(modern),
		dss(whole, "suspended", "no-context", "spin", 0).in(modern),
		dss(whole, "suspended", "flags-2", "spin", 2).in(modern),
		dss(whole, "suspended", "flags-3", "spin", 3).in(modern),
		dss(whole, "suspended", "flags-high", "spin", 0x80000000).in(modern),
		dss(whole, "suspended", "zero-seed", "spin", 1).seed("zero").in(modern),
		dss(whole, "suspended", "wild-seed", "spin", 1).seed("wild-ip").in(modern),
		dss(whole, "suspended", "native-seed", "sleep", 1).seed("native-ip").in(modern),
		dss(whole, "suspended", "abort-1", "sleep", 1).stop(1, clr.S_FALSE).in(modern),
		dss(whole, "suspended", "abort-2", "sleep", 1).stop(2, clr.S_FALSE).in(modern),
		dss(whole, "suspended", "fail-1", "sleep", 1).stop(1, clr.E_FAIL).in(modern),
		runtime(whole, "suspended", "resume"),
		// With one thread suspended.
		dss(whole, "held", "own-seed", "spin", 1).seed("own").in(windows),
		dss(whole, "held", "zero-seed", "spin", 1).seed("zero").in(windows),
		dss(whole, "held", "wild-seed", "spin", 1).seed("wild-ip").in(windows),
		dss(whole, "held", "native-seed", "spin", 1).seed("native-ip").in(windows),
		dss(whole, "held", "wild-sp", "spin", 1).seed("wild-sp").in(windows),
		dss(whole, "held", "discarded-ip", "sleep", 1).seed("wild-ip").in(windows),
		dss(whole, "held", "discarded-sp", "sleep", 1).seed("wild-sp").in(windows),
		dss(whole, "held", "abort-2", "sleep", 1).stop(2, clr.S_FALSE).in(windows),
		dss(whole, "held", "other-sp", "spin", 1).seed("other-sp").in(windows),
		// Suspended as often as can be; with an sp above all its Frames.
		dss(whole, "crowded", "spin", "spin", 1).in(old),
		dss(whole, "crowded", "sleep", "sleep", 1).in(old),
		dss(whole, "moved", "spin", "spin", 1).in(windows),
		dss(whole, "moved", "own-seed", "spin", 1).seed("own").in(windows),
		// With contexts that say the kernel is at work.
		dss(trap, "trapped", "spin", "spin", 1).in(windows),
		dss(trap, "trapped", "wild-seed", "spin", 1).seed("wild-ip").in(windows),
	}
}

// fixedAgainst are calls without leave, while the profiler goes, or that the process does
// not survive.
func fixedAgainst() []Case {
	return []Case{
		// Without ENABLE_STACK_SNAPSHOT, the first check but two.
		dss(noMask, "initialize", "unflagged", "zero", 1),
		dss(noMask, "pinvoke", "unflagged", "zero", 1),
		dss(noMask, "pinvoke", "unflagged-flags", "zero", 2),
		dss(noMask, "sampler", "unflagged", "sleep", 1),
		dss(noMask, "sampler", "unflagged-zero", "zero", 1),
		dss(noMask, "suspended", "unflagged", "sleep", 1).in(modern),
		// While the profiler is being detached, which .NET Core can since 3.0.
		{Name: "detaching.detach", Run: detach, Caller: "detaching", Verb: "detach",
			Target: "zero", Seed: "none", In: every},
		dss(detach, "detaching", "other", "main", 1).in(old),
		dss(detach, "detaching", "zero", "zero", 1).in(modern),
		dss(detach, "detaching", "flags", "zero", 2).in(modern),
		// What the process does not survive.
		runtime(twice, "suspended", "suspend"),
		dss(dead, "dead", "dead", "dead", 1).in(windows),
		dss(odd, "held", "odd-ips", "spin", 1).seed("odd-ips").in(old),
		dss(crowd, "crowded", "sleep", "sleep", 1).in(windowsModern),
		dss(wild, "allocation", "wild-sp", "zero", 1).seed("wild-sp").in(unix),
	}
}

// Line is the case as conform.c reads it.
func (c Case) Line() string {
	return fmt.Sprintf("%s %s %s %s %x %s %d %x\n", c.Name, c.Caller, c.Verb, c.Target, c.Flags,
		c.Seed, c.Stop, uint32(c.Answer))
}

// Lines is the script of a process.
func Lines(cases []Case, run Run) string {
	var b strings.Builder
	for _, c := range cases {
		if c.Run == run {
			b.WriteString(c.Line())
		}
	}
	return b.String()
}

// Answer is what became of a case.
type Answer struct {
	Result  clr.HRESULT
	Pattern string
	Size    int
	Fate    string // of the process, if the call ended it; ""
}

func (a Answer) String() string {
	if a.Fate != "" {
		return a.Fate
	}
	return fmt.Sprintf("%s %s %d", strings.TrimPrefix(a.Result.String(), "CORPROF_E_"), a.Pattern, a.Size)
}

// Parse reads what conform.c has written.
func Parse(text string) (map[string]Answer, error) {
	out := map[string]Answer{}
	for line := range strings.Lines(text) {
		var name string
		var a Answer
		var count int
		if _, err := fmt.Sscanf(line, "%s %x %s %d %d", &name, &a.Result, &a.Pattern,
			&a.Size, &count); err != nil {
			return nil, fmt.Errorf("conform: line %q: %w", line, err)
		}
		if _, again := out[name]; again {
			return nil, fmt.Errorf("conform: two answers to %s", name)
		}
		out[name] = a
	}
	return out, nil
}

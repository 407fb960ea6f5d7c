package story

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// goodRun is the number of the run that the chapter shows. The number is not important, because
// the sampler and its target take turns.
const goodRun = 1

const goodHead = `
## What one good sample is

A thread runs ` + "`Main`" + `, which calls A. A calls unmanaged code, for example through COM, where no P/Invoke is visible. That code calls back into
B, and B calls C. C passes a delegate to unmanaged code, which calls it as D. D is in a P/Invoke. Leaf first:

| | frame | who reports it | in the run below |
|---|---|---|---|
`

// goodWhat describes each of the eight frames, and the walker that reports it.
var goodWhat = [8][2]string{
	{"unmanaged, inside D's P/Invoke", "only the profiler's own walk; the CLR does not report frames on top"},
	{"D", "the CLR, or the profiler's own walk: its context is the **seed**"},
	{"unmanaged, calls the delegate",
		"the CLR as one *marker* (FunctionID 0) with its context; a walk from there fills it"},
	{"C", "the CLR"},
	{"B", "the CLR"},
	{"unmanaged, the COM-like block", "one marker again, for any number of frames"},
	{"A", "the CLR"},
	{"Main", "the CLR; the last callback is a marker for the runtime's own frames below"},
}

const goodSteps = `
Step by step, with the target's suspend count after each:

| step | count | what | if it goes wrong |
|---|---|---|---|
| claim | 0 | the thread cannot be destroyed until it is released | [thread-destroyed](#thread-destroyed) |
| prime, once for each sampler | 0 | a DoStackSnapshot of the running target, which the CLR suspends | [priming](#priming) |
| SuspendThread | 1 | requested, not yet in effect | [asynchronous-suspend](#asynchronous-suspend) |
| GetThreadContext | 1 | the target is stopped; the **window** begins here and ends with the last resume | [window-lock](#window-lock) |
| copy, walk to the first managed frame | 1 | with the profiler's own tables: no lock, no allocation, no system call | [os-unwinder](#os-unwinder) |
| DoStackSnapshot with the seed | 2 | the CLR suspends once more and calls back for D, marker, C, B, marker, A, Main, marker | [unsafe](#unsafe), [snapshot-callback](#snapshot-callback) |
| DoStackSnapshot returns | 1 | the CLR has resumed the target once | [resume-twice](#resume-twice) |
| ResumeThread | 0 | ends the window, on every path | [two-samplers](#two-samplers) |
| release | 0 | ThreadDestroyed may continue | |
| merge | 0 | the copy is walked again, and each marker is filled with the frames between its context and the next managed frame; a marker that cannot be filled is a *gap* with a reason | |

On Linux and macOS the CLR cannot suspend single threads. There SuspendRuntime replaces the two suspensions, and the target copies its own
stack in a signal handler ([held-in-handler](#held-in-handler)). A thread that walks its own stack in a callback needs none of these steps: it
passes thread 0 and no seed.

`

// chapter writes the chapter before the rules, and its pictures to files.
func chapter(b *strings.Builder, files map[string]string) {
	b.WriteString(goodHead)
	for i, name := range rules.GoodFrames {
		fmt.Fprintf(b, "| %d | %s | %s | `%s` |\n", i+1, goodWhat[i][0], goodWhat[i][1], name)
	}
	b.WriteString(goodSteps)
	r := rules.Good()
	res := r.Run(false, sched.Random(goodRun))
	short, _ := Trim(&res, "")
	fmt.Fprintf(b, "The same sample, taken by seedwalk's own sampler in the simulator (%s):\n\n", World(r))
	picture(b, files, r.Name, "timeline", Sequence(short))
}

// behind writes the tests that enforce a rule, and the real CLRs on which it was provoked.
func behind(b *strings.Builder, enforced, provoked string) {
	fmt.Fprintf(b, "*Enforced by: %s. Provoked: %s.*\n", enforced, provoked)
}

// The rules that no world shows, written as text.
func told(b *strings.Builder) {
	b.WriteString("\n## Rules that no world shows\n\nThey are about values or locks that the simulator does not model, or about sampling from outside.\n")
	for _, r := range rules.TextRules() {
		fmt.Fprintf(b, "\n### %s\n\n**%s**\n\n%s\n\n", r.Name, r.Line, fill(r.Text, 120, ""))
		behind(b, r.Enforced, r.Provoked)
	}
}

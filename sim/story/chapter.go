package story

import (
	"fmt"
	"strings"

	"github.com/seedwalk/seedwalk/sim/rules"
	"github.com/seedwalk/seedwalk/sim/sched"
)

// goodRun is the number of the run that the chapter shows; any would do, since
// the sampler and its target take turns.
const goodRun = 1

const goodHead = `
## What one good sample is

A thread runs ` + "`Main`" + `, which calls A. A calls unmanaged code (COM does that without a P/Invoke to be seen), which calls back into B; B calls C; C
hands a delegate to unmanaged code, which calls it: D. D is in a P/Invoke just now. Leaf first:

| | frame | who knows of it | in the run below |
|---|---|---|---|
`

// goodWhat describes what each of the eight frames is, and who reports it.
var goodWhat = [8][2]string{
	{"unmanaged, inside D's P/Invoke", "only a walk of one's own; the CLR says nothing of what is on top"},
	{"D", "the CLR, or the own walk: its context is the **seed**"},
	{"unmanaged, calls the delegate", "the CLR as one *marker* (FunctionID 0) with its context; a walk from there fills it"},
	{"C", "the CLR"},
	{"B", "the CLR"},
	{"unmanaged, the COM-like block", "one marker again, however many frames it has"},
	{"A", "the CLR"},
	{"Main", "the CLR; the last callback is a marker for the runtime's own frames below"},
}

const goodSteps = `
Step by step, with the target's suspend count after each:

| step | count | what | if it goes wrong |
|---|---|---|---|
| claim | 0 | nobody may destroy the thread until it is given back | [thread-destroyed](#thread-destroyed) |
| prime, once for each sampler | 0 | a DoStackSnapshot of the running target, the CLR suspending it | [priming](#priming) |
| SuspendThread | 1 | asked, not in force | [asynchronous-suspend](#asynchronous-suspend) |
| GetThreadContext | 1 | the target stands; from here to the last resume the **window** | [window-lock](#window-lock) |
| copy, walk to the first managed frame | 1 | from own tables: no lock, no allocation, no call of the system | [os-unwinder](#os-unwinder) |
| DoStackSnapshot with the seed | 2 | the CLR suspends once more, calls back D, marker, C, B, marker, A, Main, marker | [unsafe](#unsafe), [snapshot-callback](#snapshot-callback) |
| DoStackSnapshot returns | 1 | the CLR has resumed what it had suspended | [resume-twice](#resume-twice) |
| ResumeThread | 0 | the end of the window, on every path | [two-samplers](#two-samplers) |
| release | 0 | ThreadDestroyed may go on | |
| merge | 0 | the copy is walked again, each marker filled with the frames between its context and the next managed one; a hole that cannot be filled is a *gap* with a reason | |

On Linux and macOS the CLR suspends no thread for anybody: there SuspendRuntime takes the place of the two suspensions, and the target
copies its own stack in a signal handler ([held-in-handler](#held-in-handler)). A walk from inside a callback, of the thread itself, needs none of
all this: thread 0, no seed, no suspension.

`

// chapter is the one that comes before the rules.
func chapter(b *strings.Builder, files map[string]string) {
	b.WriteString(goodHead)
	for i, name := range rules.GoodFrames {
		fmt.Fprintf(b, "| %d | %s | %s | `%s` |\n", i+1, goodWhat[i][0], goodWhat[i][1], name)
	}
	b.WriteString(goodSteps)
	r := rules.Good()
	res := r.Run(false, sched.Random(goodRun))
	short, _ := Trim(&res, "")
	fmt.Fprintf(b, "The same as a run of seedwalk's own sampler in the simulator (%s):\n\n", World(r))
	picture(b, files, r.Name, "timeline", Sequence(short))
	fmt.Fprintf(b, "```\n%s```\n", outdent(timeline(&res, "", false)))
}

// behind is what stands behind a rule beside its world.
func behind(b *strings.Builder, enforced, provoked string) {
	fmt.Fprintf(b, "*Enforced by: %s. Provoked: %s.*\n", enforced, provoked)
}

// The rules that no world shows.
func told(b *strings.Builder) {
	b.WriteString("\n## Rules that no world shows\n\nThey are about values or locks that the simulator does not model, or about sampling from outside.\n")
	for _, r := range rules.TextRules() {
		fmt.Fprintf(b, "\n### %s\n\n**%s**\n\n%s\n\n", r.Name, r.Line, fill(r.Text, 120, ""))
		behind(b, r.Enforced, r.Provoked)
	}
}

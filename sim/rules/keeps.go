package rules

import (
	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/sim"
)

// keep is what stands behind a rule beside its world.
type keep struct {
	enforced string
	provoked string
	idle     bool
}

const (
	window   = "sim TestNoLocksNoLogs (what the window's packages import), snapshot TestWindowDoesNotAllocate; the C half: profiler/host TestWindowCalls (what its machine code calls), e2e TestWindowsTorture"
	never    = "never provoked on a real CLR"
	samplers = "sim TestSampleProtocol and sim/rules TestKept, which fail when the sampler breaks it"
)

// keeps is by rule. A rule without an entry fails TestRulesAreWhole.
var keeps = map[string]keep{
	"window-lock": {window,
		"on .NET Core 2.2 of Windows under Wine with five of the six locks, see each", true},
	"heap": {window, "HeapAlloc, .NET Core 2.2 of Windows under Wine: after 978 suspensions", true},
	"loader": {window,
		"GetModuleHandle and GetProcAddress, .NET Core 2.2 of Windows under Wine: the whole process", true},
	"environment": {window,
		"GetEnvironmentVariable, .NET Core 2.2 of Windows under Wine: at the first suspension", true},
	"log": {window, never + ": no hang in 40,423 suspensions with writes that were empty", true},
	"profiler-lock": {window,
		"a CRITICAL_SECTION of the program's, .NET Core 2.2 of Windows under Wine: after 7 suspensions", true},
	"go-callback": {"callbacks are C (profiler/callback.c) and queue; e2e TestSoak runs with collections",
		"Go callbacks on application threads, .NET Core 2.2 of Windows under Wine: within 25 s", true},
	"os-unwinder": {window + "; no import of the system's unwinder",
		"RtlLookupFunctionEntry beside RtlAddFunctionTable under Wine: after 64 suspensions", true},
	"unsafe": {samplers + "; snapshot TestDecide",
		".NET Core 2.2 of Windows: 74 of 74 in the collector's initiator; sim/conform row 9", false},

	"snapshot-lock": {samplers + "; snapshot TestLoading; e2e TestWindowsWatchdog",
		never + ": Wine's function takes no such lock", false},

	"snapshot-callback":    {"the recorder of profiler/host/info.c writes into a buffer that is there; capi/checked names the rule in a profiler", never, true},
	"lock-chain":           {window, never, true},
	"walks-collector":      {"the sampler is a thread of C's that the CLR has never seen (profiler/host/sampler_*.c); capi/checked names a managed one", never, true},
	"cooperative-callback": {"the list of threads is claimed by a word, not locked (profiler/host/threads.c); clr/api MayWait, asked of real CLRs by mode; capi/checked names a lock there", ".NET 9.0.5: 1 of 2 runs of a profiler with one mutex", true},

	"two-samplers": {"one sampler a process (profiler/callback.c, `taken`); e2e TestWindowsTorture",
		"two threads that suspend each other under Wine: at the first cycle", true},
	"managed-sampler": {"the sampler is a thread of C's (profiler/host/sampler_*.c); capi/checked names a managed one", never, true},
	"thread-destroyed": {samplers + "; e2e TestWindowsChurn, whose unguarded side dies",
		".NET Core 2.2 of Windows under Wine: exit code 8013135e, 2 of 2", false},
	"claim-order": {"sim/native TestWorlds: the C itself, in every order of its steps and every memory order (this world is of the same order of loads)", never, true},
	"resume-twice": {samplers + "; sim TestSampleProtocol counts; capi/checked",
		"SuspendRuntime twice, .NET 9.0.5: the process never goes on", false},
	"asynchronous-suspend": {"sim TestSampleProtocol (GetThreadContext follows SuspendThread)",
		never + ": Wine suspends at once", true},
	"collector-wait": {samplers, ".NET Core 2.2 of Windows under Wine: 430 of 6,000 samples", false},
	"priming": {"snapshot TestPrime, sim TestPrimeProtocol",
		never + ": 2,000 first calls with and without", false},

	"gc-callback": {"no callback of the profiler's takes a lock that is held over a call of the info interface; capi/checked names one", never, true},
	"module-load": {"as gc-callback", never, true},

	"adjusted-seed": {samplers, ".NET Core 2.2 of Windows under Wine: 80131506, 4 of 4", false},
	"hijacked-return": {samplers + "; clr/contract's tests of hijacked threads",
		".NET 9.0.5 and 10.0.9 of Linux, with collections", false},
	"redirected-target": {samplers + "; snapshot TestRedirectedWhileSuspended",
		".NET Core 2.2 of Windows under Wine: 386 samples with the redirect stub on top", false},

	"held-in-handler": {samplers, ".NET 9.0.5 of Linux, a program full of exceptions: within seconds", false},
	"resume-runtime": {samplers +
		"; sim TestRoundProtocol; capi/checked names a callback that leaves the runtime suspended",
		".NET 9.0.5 (sim/conform, suspended.suspend)", false},
	"alternate-stack": {"e2e soak of collections; profiler/guard.c restores what the Go runtime changed",
		"SIGSEGV under collections, .NET 9.0.5 of Linux", true},
}

// hazard describes the danger that makes a rule necessary.
type hazard struct {
	text string
	met  func(c *sim.Counts) bool // reports whether a run met the danger
}

// answered reports whether the CLR gave an answer.
func answered(hr clr.HRESULT) func(c *sim.Counts) bool {
	return func(c *sim.Counts) bool { return c.Results[hr] > 0 }
}

// hazards is by rule, for each that is not idle.
var hazards = map[string]hazard{
	"unsafe": {"the CLR answers UNSAFE",
		answered(clr.CORPROF_E_STACKSNAPSHOT_UNSAFE)},
	"snapshot-lock": {"a sampled thread is in the loader",
		func(c *sim.Counts) bool { return c.Loading+c.Rescues > 0 }},
	"thread-destroyed": {"a thread ends while it is walked",
		func(c *sim.Counts) bool { return c.Waited > 0 }},
	"resume-twice": {"another profiler has suspended the thread too",
		func(c *sim.Counts) bool { return c.Shared > 0 }},
	"collector-wait": {"the CLR answers E_FAIL", answered(clr.E_FAIL)},
	"priming": {"the suspended thread owns the lock of the first call",
		func(c *sim.Counts) bool { return c.Owners > 0 }},
	"adjusted-seed": {"a seed is given",
		func(c *sim.Counts) bool { return c.Seeded > 0 }},
	"hijacked-return": {"a return address is hijacked",
		func(c *sim.Counts) bool { return c.Hijacked > 0 }},
	"redirected-target": {"the CLR calls a captured method unmanaged",
		func(c *sim.Counts) bool { return c.Again > 0 }},
	"held-in-handler": {"the copied thread owns the lock of the walk",
		func(c *sim.Counts) bool { return c.Owners > 0 }},
	"resume-runtime": {"a walk fails while the runtime is suspended",
		func(c *sim.Counts) bool { return c.Results[clr.S_OK] < c.Snapshots }},
}

// TextRule is a rule that no world of this package shows: it is about values or locks that the model
// does not have, or about sampling from outside.
type TextRule struct {
	Name, Line, Text, Enforced, Provoked string
}

// TextRules lists them.
func TextRules() []TextRule {
	return append([]TextRule{
		{"frame-info", "A frameInfo is invalid after its StackSnapshotCallback returns.",
			"It points into the walker's own frame. To get generic arguments, call GetFunctionInfo2 in the callback; the FunctionID alone does not give them later.",
			"the recorder of profiler/host/info.c does not keep it",
			never + " (no answer of the CLR shows it)"},
		{"stale-function", "A FunctionID is a pointer: it is valid only as long as its module.",
			"After ModuleUnloadFinished or DynamicMethodUnloaded, an old id points to freed memory, and the CLR does not check. Read names before ModuleUnloadStarted returns, and block there until the thread that reads them is done.",
			"e2e TestWindowsUnloadWaits", "the process without that wait, .NET 10.0.9 of Windows under Wine"},
		{"never-hijack", "Never write a thread's instruction pointer to make it walk itself.",
			"The thread may own any lock, be on any stack, or be in a prolog. The CLR may be about to redirect it in the same way, and does not expect another change. A copy of registers and stack gives the same frames and changes nothing.",
			"nothing of the project writes a context: no SetThreadContext in profiler/", never},
		{"detaching", "After RequestProfilerDetach, make no more calls and leave nothing installed.",
			"The CLR then answers 80131367 to every call, and frees the library once no callback runs. By then the profiler's threads must have ended, and its handlers and hooks must be removed. The CLR refuses to detach (80131370) if an immutable bit or a hook was used.",
			"sim/conform, cases detaching.*; capi/checked", ".NET 9.0.5 and 10.0.9: 80131367"},
	}, outside...)
}

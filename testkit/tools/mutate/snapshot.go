package main

const (
	roundFile  = "stack/snapshot/snapshot.go"
	threadFile = "stack/snapshot/threads.go"
	adviceFile = "stack/snapshot/decide.go"
)

// protocol are the steps that see what a sampler does.
var protocol = []*Step{snapshotTests, asked, rules, random, inputs}

// roundFaults are those of the sampler that suspends the runtime.
func roundFaults() []Fault {
	in := faultsOf(roundFile, protocol...)
	lock := in("round-lock", "a lock is taken in the window", "\trt := s.rt\n",
		"\trt := s.rt\n\twindow.Lock()\n\tdefer window.Unlock()\n")
	lock.Also = []Edit{{"import \"github.com/seedwalk/seedwalk/clr\"\n",
		"import (\n\t\"sync\"\n\n\t\"github.com/seedwalk/seedwalk/clr\"\n)\n\nvar window sync.Mutex\n"}}
	alloc := in("round-allocation", "the window allocates", "\trt := s.rt\n",
		"\trt := s.rt\n\tlast = make([]byte, len(threads)+1)\n")
	alloc.Also = []Edit{{"// Outcome is the result of a round.\n",
		"var last []byte\n\n// Outcome says how a round went.\n"}}
	return []Fault{
		lock, alloc,
		in("round-log", "the window logs", "\trt := s.rt\n",
			"\trt := s.rt\n\tprintln(\"suspended\")\n\tfmt.Fprintln(os.Stderr)\n").
			also("import \"github.com/seedwalk/seedwalk/clr\"\n",
				"import (\n\t\"fmt\"\n\t\"os\"\n\n\t\"github.com/seedwalk/seedwalk/clr\"\n)\n"),
		in("round-no-resume", "the runtime is never resumed", "\ts.rt.ResumeRuntime()\n", ""),
		in("round-resume-twice", "the runtime is resumed twice", "\ts.rt.ResumeRuntime()\n",
			"\ts.rt.ResumeRuntime()\n\ts.rt.ResumeRuntime()\n"),
		in("round-resume-early", "the runtime is resumed before the threads are walked",
			"\ts.window(threads)\n\ts.rt.ResumeRuntime()\n", "\ts.rt.ResumeRuntime()\n\ts.window(threads)\n"),
		in("round-swallowed-hresult", "a suspension that failed counts as one",
			"if !o.Result.Failed() {", "if true {"),
		in("round-refused-for-ever", "a final refusal is asked again",
			"!clr.SuspensionRetry(o.Result) || ", ""),
		in("round-no-retry", "a refusal for the moment is final",
			"!clr.SuspensionRetry(o.Result) || o.Retries == MaxRetries", "true"),
		in("round-retry-no-bound", "the runtime is asked for ever", " || o.Retries == MaxRetries", ""),
		in("round-no-pause", "no wait between two questions", "\t\ts.rt.Pause(pause)\n", ""),
		in("round-pause-in-window", "a pause while the runtime is suspended", "\trt.Leave()\n",
			"\trt.Pause(1)\n\trt.Leave()\n"),
		in("round-no-enter", "destructions do not wait for the walk", "\trt.Enter()\n", ""),
		in("round-no-leave", "destructions wait for ever", "\trt.Leave()\n", ""),
		in("round-gone-asked", "a destroyed thread is asked", "if rt.Alive(threads[i]) {",
			"if rt.Alive(threads[i]); true {"),
		in("round-gone-walked", "a destroyed thread is walked",
			"if c := &s.Captures[i]; c.Status != clr.CaptureGone {\n\t\t\trt.DoStackSnapshot",
			"if c := &s.Captures[i]; true {\n\t\t\trt.DoStackSnapshot"),
		in("round-wrong-slot", "the wrong slot is awaited", "rt.Await(i, c)", "rt.Await(0, c)"),
		in("round-no-await", "the answers are not awaited", "\t\t\trt.Await(i, c)\n", "\t\t\t_ = c\n"),
		in("round-walk-before-await", "the CLR walks before the thread has answered",
			"\t\t\trt.Await(i, c)\n", "\t\t\trt.DoStackSnapshot(i, c)\n\t\t\trt.Await(i, c)\n"),
		in("round-too-many", "more threads than slots", "if len(threads) > len(s.Captures) {", "if false {"),
		in("round-stale-capture", "what an earlier round captured is kept",
			"*c = clr.Capture{Thread: threads[i], Status: clr.CaptureGone, Result: clr.E_FAIL}",
			"c.Thread, c.Status, c.Result = threads[i], clr.CaptureGone, clr.E_FAIL"),
	}
}

// threadFaults are those of the sampler that suspends one thread.
func threadFaults() []Fault {
	in := faultsOf(threadFile, protocol...)
	advice := faultsOf(adviceFile, protocol...)
	return []Fault{
		in("thread-lock", "a lock is taken in the window", "\tc.Status = clr.Captured\n",
			"\tc.Status = clr.Captured\n\twindow.Lock()\n\tdefer window.Unlock()\n").
			also("import (\n", "import (\n\t\"sync\"\n\n").also("// MaxTries bounds",
			"var window sync.Mutex\n\n// MaxTries bounds"),
		in("thread-allocation", "the window allocates", "\tc.Status = clr.Captured\n",
			"\tc.Status = clr.Captured\n\tlast = new(seed.Outcome)\n").
			also("// MaxTries bounds", "var last *seed.Outcome\n\n// MaxTries bounds"),
		in("thread-no-resume", "the thread is never resumed", "\t\ts.rt.Resume(0, t)\n", ""),
		in("thread-resume-twice", "the thread is resumed twice", "\t\ts.rt.Resume(0, t)\n",
			"\t\ts.rt.Resume(0, t)\n\t\ts.rt.Resume(0, t)\n"),
		in("thread-lost-resume", "a thread without a context is not resumed", "\t\ts.rt.Resume(0, t)\n",
			"\t\tif c.Status == clr.Captured {\n\t\t\ts.rt.Resume(0, t)\n\t\t}\n"),
		in("thread-suspend-ignored", "a thread that could not be suspended is walked",
			"o.Suspend == clr.Suspended {", "true {"),
		in("thread-context-ignored", "a thread without a context is walked",
			"\tif !s.rt.Context(0, c) {\n\t\treturn\n\t}\n", "\ts.rt.Context(0, c)\n"),
		in("thread-no-release", "the claim is never given back", "\ts.rt.Release(t)\n\tswitch", "\tswitch"),
		in("thread-no-claim", "the thread may be destroyed under the walk",
			"\tif !s.rt.Claim(t) {\n\t\treturn false\n\t}\n\tstart", "\tstart"),
		in("thread-gone-ignored", "a destroyed thread is walked",
			"\tif !s.rt.Claim(t) {\n\t\treturn false\n\t}\n\tstart", "\ts.rt.Claim(t)\n\tstart"),
		in("thread-pause-in-window", "a pause while the thread is suspended", "\t\ts.rt.Resume(0, t)\n",
			"\t\ts.rt.Pause(1)\n\t\ts.rt.Resume(0, t)\n"),
		in("thread-no-pause", "no wait between two tries", "\t\ts.rt.Pause(pause)\n", ""),
		in("thread-retry-no-bound", "a thread is tried for ever", " || o.Tries == MaxTries", ""),
		in("thread-retry-all", "what is refused for ever is tried again", "o.Advice != AdviceRetry ||",
			"o.Advice == AdviceComplete ||"),
		in("thread-no-retry", "what is refused for the moment is given up",
			"o.Advice != AdviceRetry ||", "true ||"),
		in("thread-not-primed", "the first call is made with a thread suspended", "for s.primed {", "for {"),
		in("thread-primed-by-nothing", "a walk without a frame counts as priming",
			"s.primed = n > 0", "s.primed = n >= 0"),
		in("thread-prime-no-release", "priming keeps the thread", "\t\ts.rt.Release(threads[i])\n", ""),
		in("thread-prime-no-claim", "priming walks a thread that may be gone",
			"\t\tif !s.rt.Claim(threads[i]) {\n\t\t\tcontinue\n\t\t}\n", ""),
		in("thread-unusable-seed", "a seed is given, whatever its verdict",
			"c.Seeded = o.Verdict == seed.Found", "c.Seeded = true"),
		in("thread-no-seed", "a good seed is not given",
			"c.Seeded = o.Verdict == seed.Found", "c.Seeded = false"),
		in("thread-stale-capture", "what an earlier try captured is kept",
			"*c = clr.Capture{Thread: t, Status: clr.CaptureGone, Result: clr.E_FAIL}",
			"c.Thread, c.Status, c.Result = t, clr.CaptureGone, clr.E_FAIL"),
		in("thread-denied-is-gone", "a thread that may not be suspended counts as gone",
			"o.Advice = AdviceDenied", "o.Advice = AdviceGone"),
		in("redirect-unseen", "there is no second look at a method that the CLR calls unmanaged",
			" && s.redirected(c) {", " && false {"),
		in("redirect-not-walked", "the second walk is not made",
			"\t\tc.Seeded = true\n\t\ts.rt.DoStackSnapshot(0, c)\n", "\t\tc.Seeded = true\n"),
		in("redirect-no-seed", "the second walk gets no seed", "\t\tc.Seeded = true\n", ""),
		in("redirect-unchecked", "the second walk is made without a second look",
			" && s.redirected(c) {", " {"),
		in("redirect-any-refusal", "every refusal is taken for a redirection",
			"c.Result == clr.CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX && ", "c.Result.Failed() && "),
		in("redirect-any-verdict", "unmanaged code on top is looked at once more",
			"o.Verdict == seed.NotNeeded && c.Result", "c.Result"),
		in("redirect-lost-context", "a second context that was not to be had counts",
			"\tif !s.rt.Context(0, now) {\n\t\treturn false\n\t}\n", "\ts.rt.Context(0, now)\n"),
		in("redirect-replaced", "the second look replaces the first", "now := &s.again", "now := c"),
		in("redirect-anywhere", "any other ip counts as the stub",
			"return stubbed", "return stubbed || true"),
		in("redirect-contradicted", "a method that the witnesses contradict is passed",
			" && s.seeder.Seed(now) != seed.Unsafe", ""),
		in("redirect-moved", "a thread that was moved counts as redirected",
			"if !now.Regs.Equal(&c.Seed) {", "if false {"),
		in("redirect-moved-stack", "the stack of a thread that was moved is kept",
			"\t\tc.Stack = memory.Run{}\n\t\treturn false\n", "\t\t_ = memory.Run{}\n\t\treturn false\n"),
		in("redirect-moved-walked", "a thread that was moved loses its stack, and is walked",
			"\t\tc.Stack = memory.Run{}\n\t\treturn false\n",
			"\t\tc.Stack = memory.Run{}\n\t\treturn stubbed\n"),
		in("redirect-ip", "the ip of x86-64 is compared too", "now.Regs.SetIP(c.Seed.IP())", ""),
		advice("advice-swallowed-hresult", "an unknown failure counts as success",
			"\treturn AdviceRefused\n", "\treturn AdviceComplete\n"),
		advice("advice-unsafe-is-final", "UNSAFE is final",
			"\t\t// The target owns a lock that the walk needs, or a collection has started.\n\t\treturn AdviceRetry\n", "\t\treturn AdviceRefused\n"),
		advice("advice-fail-is-native", "E_FAIL counts as a thread without managed frames",
			"if v == seed.NoManaged {", "if true {"),
		advice("advice-aborted-is-whole", "a walk cut short counts as whole", "\t\treturn AdvicePartial\n",
			"\t\treturn AdviceComplete\n"),
	}
}

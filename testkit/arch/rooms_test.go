package arch

// room is a package and what it may import of the project. A file may import the packages in May. A test may
// also import the package itself, the test kit, and the packages in Test.
type room struct {
	Name string
	May  []string
	Test []string
}

// Short names for packages that are imported together; a package is above all of its imports.
var (
	words   = []string{"context", "context/memory"}
	formats = []string{"pe", "pe/rva", "pe/amd64", "pe/arm64", "elf", "cfi",
		"internal/buf", "internal/wholefile"}
	tables  = with(words, formats, "unwind/module")
	walkers = with(tables, "unwind", "unwind/nearcall", "unwind/x86", "unwind/amd64",
		"unwind/arm64", "unwind/walker")
	runtime = with(walkers, "clr", "clr/managed", "clr/contract", "clr/api")
	merged  = with(runtime, "stack/seed", "stack/snapshot", "stack/merge")
)

// everything is what tests above all rooms may import: anything but a command.
var everything = []string{"*"}

// rooms lists every package, from the bottom up: a package may import only packages above it in this list.
// Add a new package as high as possible.
var rooms = []room{
	// Layouts, memory, formats: they know nothing of unwinding.
	{Name: "internal/buf"},
	{Name: "internal/intern"},
	{Name: "internal/wholefile"},
	{Name: "internal/emulator"},
	{Name: "internal/procstat"},
	{Name: "context"},
	{Name: "context/memory"},
	{Name: "report/export/otlp"},
	{Name: "report/export/category"},
	{Name: "report/export/estimate"},
	{Name: "report/export/shorten"},
	{Name: "report/export/firefox"},
	{Name: "report/export/page", May: []string{"internal/intern"}},
	{Name: "report/export/speedscope"},
	{Name: "report/export/timeline"},
	{Name: "report/export/traceevent"},
	{Name: "report/export", May: []string{"internal/intern", "report/export/category",
		"report/export/estimate", "report/export/otlp", "report/export/firefox", "report/export/page",
		"report/export/shorten", "report/export/speedscope", "report/export/timeline",
		"report/export/traceevent"}, Test: words},
	{Name: "pe/rva", May: []string{"context", "internal/buf"}},
	{Name: "pe/amd64", May: []string{"context", "internal/buf", "pe/rva"}, Test: formats},
	{Name: "pe/arm64", May: []string{"context", "internal/buf", "pe/rva"}, Test: formats},
	{Name: "pe", May: []string{"context", "internal/buf", "internal/wholefile",
		"pe/rva", "pe/amd64", "pe/arm64"}},
	{Name: "elf", May: []string{"context", "internal/buf", "internal/wholefile"}, Test: []string{"cfi"}},
	{Name: "cfi", May: []string{"internal/buf", "context", "context/memory"}, Test: tables},
	{Name: "unwind/module", May: with(words, formats)},
	{Name: "symbol/clrnames"},
	{Name: "symbol/server"},
	{Name: "symbol/pdb", May: []string{"internal/wholefile"}},
	{Name: "symbol", May: with(tables, "internal/procstat", "symbol/clrnames", "symbol/pdb")},

	// Unwinding: it knows nothing of the CLR.
	{Name: "unwind", May: with(words, "unwind/module"), Test: with(tables, "unwind/amd64", "unwind/arm64")},
	{Name: "unwind/nearcall"},
	{Name: "unwind/x86", May: []string{"context"}, Test: []string{"context", "elf"}},
	{Name: "unwind/amd64", May: with(tables, "unwind", "unwind/nearcall", "unwind/x86")},
	{Name: "unwind/arm64", May: with(tables, "unwind", "unwind/nearcall")},
	{Name: "unwind/walker", May: with(tables, "unwind", "unwind/amd64", "unwind/arm64")},
	{Name: "report/wire", May: []string{"context", "unwind"}},

	// The CLR: it knows no operating system.
	{Name: "clr/demangle"},
	{Name: "clr", May: with(words, "unwind"), Test: walkers},
	{Name: "clr/api", May: with(words, "clr")},
	{Name: "clr/managed", May: with(walkers, "clr"), Test: []string{"clr/contract", "testkit/elfasm"}},
	{Name: "clr/contract", May: with(walkers, "clr", "clr/managed"),
		Test: []string{"process/live", "testkit/needs"}},
	{Name: "clr/metadata", May: with(words, "clr/demangle"), Test: []string{"testkit/clrasm"}},
	{Name: "clr/naming", May: with(words, "clr/demangle", "clr/contract", "clr/metadata", "pe")},
	{Name: "clr/objects", May: with(words, "clr/naming", "clr/contract")},
	{Name: "clr/tasks", May: with(words, "internal/intern", "clr/objects", "clr/naming", "clr/contract")},
	{Name: "stack/seed", May: with(walkers, "clr", "clr/managed")},
	{Name: "stack/snapshot", May: with(walkers, "clr", "clr/managed", "stack/seed")},
	{Name: "stack/merge", May: with(walkers, "clr", "clr/managed", "stack/seed"),
		Test: []string{"sim/image"}},

	// What is mapped where, in a process or a file: nothing of frames.
	{Name: "process/program", May: formats},
	{Name: "process/live", May: with(tables, "internal/emulator")},
	{Name: "process/dump", May: with(tables, "process/live")},
	{Name: "stack/capture", May: with(tables, "internal/procstat", "process/live"), Test: walkers},

	// When to sample whom.
	{Name: "sample/perfevent", May: []string{"context", "internal/buf"}},
	{Name: "sample/cpuring", May: []string{"sample/perfevent"}, Test: []string{"context"}},

	// The runtime's own reports.
	{Name: "eventpipe/diagnostics", May: []string{"internal/buf", "internal/emulator", "internal/procstat"}},
	{Name: "eventpipe/nettrace", May: []string{"internal/buf"}},
	{Name: "eventpipe/nettrace/clrevent", May: []string{"internal/buf", "eventpipe/nettrace"}},
	{Name: "eventpipe/pool",
		May: []string{"eventpipe/diagnostics", "eventpipe/nettrace", "eventpipe/nettrace/clrevent"}},
	{Name: "eventpipe/waits", May: []string{"eventpipe/nettrace", "eventpipe/nettrace/clrevent", "symbol"},
		Test: []string{"eventpipe/diagnostics"}},
	{Name: "eventpipe/waits/report", May: []string{"clr/demangle", "eventpipe/waits", "internal/intern"},
		Test: []string{"eventpipe/nettrace", "eventpipe/nettrace/clrevent"}},

	// One process's samples, in any process; the profilers around it.
	{Name: "internal/quiet"},
	{Name: "stack/raw", May: merged},
	{Name: "sample/stream", May: with(merged, "report/wire", "stack/raw")},
	{Name: "sample/agent", May: with(merged, "clr/demangle", "clr/metadata", "clr/naming", "report/wire",
		"internal/quiet", "stack/raw", "sample/stream", "symbol")},
	{Name: "sample/probe", May: with(merged, "process/live", "report/wire", "sample/agent"),
		Test: []string{"clr/tasks", "sim/sched"}},
	{Name: "stack/walk", May: merged,
		Test: []string{"sim", "sim/image", "sim/machine", "sim/worlds", "testkit/fakestack"}},
	{Name: "sample/alarm"},
	{Name: "sample/threads",
		May:  []string{"report/wire", "stack/merge", "sample/cpuring", "sample/perfevent", "sample/stream"},
		Test: []string{"testkit/threadprog"}},
	{Name: "sample/target", May: with(merged, "clr/metadata", "clr/naming",
		"internal/wholefile", "process/live")},
	{Name: "sample/paused", May: with(merged, "clr/metadata", "clr/objects", "clr/tasks", "process/live",
		"process/program", "sample/target", "sample/threads", "stack/walk", "symbol", "internal/procstat"),
		Test: []string{"process/dump", "stack/raw", "testkit/threadprog"}},
	{Name: "sample/startup", May: []string{"internal/procstat", "sample/cpuring", "sample/perfevent"},
		Test: []string{"context"}},
	{Name: "sample/sampler",
		May: with(merged, "clr/demangle", "clr/objects", "clr/tasks", "process/live", "report/wire",
			"sample/alarm", "sample/probe", "sample/startup", "sample/stream",
			"sample/target", "stack/walk")},
	{Name: "sample/births",
		May: []string{"report/wire", "sample/alarm", "sample/cpuring", "sample/perfevent", "sample/sampler",
			"sample/threads"}, Test: []string{"sample/target"}},
	{Name: "sample/events", May: with(merged, "eventpipe/nettrace/clrevent", "report/wire", "sample/alarm",
		"sample/probe", "sample/sampler", "sample/stream", "sample/target", "stack/walk")},
	{Name: "sample/probe/reader",
		May: with(merged, "process/live", "sample/probe", "sample/target", "sample/threads")},
	{Name: "sample/stopped",
		May: with(merged, "internal/procstat", "process/live", "report/wire", "sample/cpuring",
			"sample/paused", "sample/perfevent", "sample/sampler", "sample/stream", "sample/target",
			"sample/threads", "stack/walk"), Test: []string{"testkit/threadprog"}},
	{Name: "sample/suspended",
		May: with(merged, "process/live", "report/wire", "sample/events", "sample/probe", "sample/sampler",
			"sample/stream", "sample/target", "stack/walk")},
	{Name: "sample/outside",
		May: with(merged, "process/live", "report/wire", "sample/alarm", "sample/births", "sample/cpuring",
			"sample/events", "sample/perfevent", "sample/probe", "sample/probe/reader",
			"sample/sampler", "sample/startup", "sample/stream", "sample/target", "sample/threads",
			"stack/walk"),
		Test: []string{"testkit/threadprog"}},
	{Name: "sample/blocked",
		May: with(merged, "process/live", "sample/paused", "sample/target", "stack/walk", "eventpipe/waits")},
	{Name: "eventpipe/waits/session",
		May: []string{"eventpipe/diagnostics", "elf", "process/live", "eventpipe/nettrace/clrevent", "pe",
			"symbol", "eventpipe/waits"}, Test: []string{"sample/blocked"}},
	{Name: "profiler/host", May: with(merged, "clr/demangle", "clr/metadata", "clr/naming", "process/live",
		"internal/quiet", "internal/wholefile", "sample/agent"), Test: []string{"testkit/tempdir"}},
	{Name: "profiler", May: []string{"sample/agent", "profiler/host"}},
	{Name: "profiler/e2e", Test: everything},
	{Name: "profiler/e2e/testprof/oracle", May: with(merged, "sample/agent")},
	{Name: "profiler/e2e/testprof/torture", May: []string{"sample/agent", "clr", "internal/quiet"}},
	{Name: "capi", May: with(merged, "symbol", "process/live", "internal/quiet", "stack/raw", "sample/agent",
		"process/dump", "profiler/host"),
		Test: []string{"sim", "sim/image", "sim/vm", "sim/worlds"}},
	{Name: "capi/checked"},

	// The tool.
	{Name: "report/inspect", May: with(tables, "symbol")},
	{Name: "report/collect", May: []string{"internal/intern", "report/export", "unwind", "report/wire"}},
	{Name: "report/recording", May: []string{"internal/buf", "report/collect", "report/wire"},
		Test: []string{"report/export", "unwind"}},
	{Name: "report/hang"},
	{Name: "report/diff", May: []string{"internal/intern", "report/export"},
		Test: []string{"testkit/browser"}},
	{Name: "report/trace", May: []string{"clr/demangle", "internal/intern", "report/export",
		"eventpipe/nettrace", "eventpipe/nettrace/clrevent", "eventpipe/pool", "eventpipe/waits"},
		Test: []string{"testkit/nettracefile"}},
	{Name: "cmd/record/options",
		May: with(formats, "clr/contract", "process/program", "report/collect", "report/export",
			"sample/probe", "sample/sampler", "sample/startup")},
	{Name: "cmd/record/output",
		May: []string{"cmd/record/options", "report/collect", "report/export",
			"report/recording", "report/wire"}},
	{Name: "cmd/record/listen", May: []string{"sample/probe"}},
	{Name: "cmd/record/inflow",
		May: []string{"cmd/record/listen", "cmd/record/options", "elf", "eventpipe/pool", "internal/procstat",
			"process/live", "report/collect", "report/wire"}},
	{Name: "cmd/record", May: with(merged, "cmd/record/options", "cmd/record/output", "cmd/record/listen",
		"cmd/record/inflow", "internal/procstat", "sample/agent", "report/export", "report/collect",
		"report/recording", "process/program", "process/live", "process/dump", "sample/probe",
		"sample/alarm", "sample/outside", "sample/paused",
		"sample/sampler", "sample/startup", "sample/stopped", "sample/suspended", "sample/target", "symbol",
		"report/wire", "eventpipe/diagnostics", "eventpipe/nettrace", "eventpipe/nettrace/clrevent",
		"eventpipe/pool", "eventpipe/waits", "eventpipe/waits/report",
		"sample/blocked", "eventpipe/waits/session")},
	{Name: "testkit/judge", May: with(walkers, "clr", "clr/managed", "report/inspect", "testkit/pevec",
		"testkit/snap", "testkit/peasm", "testkit/elfasm")},
	{Name: "testkit/judgetest", May: []string{"testkit/judge", "testkit/pevec", "testkit/snap"}},
	{Name: "testkit/replay",
		May: with(walkers, "report/inspect", "testkit/judge", "testkit/pevec",
			"testkit/snap", "testkit/peasm")},

	// Suspended worlds: product code under every schedule, on images of their own.
	{Name: "sim/sched"},
	{Name: "sim/native"},
	{Name: "sim/image", Test: tables},
	{Name: "sim/machine", May: []string{"context", "sim/image"}, Test: walkers},
	{Name: "sim/vm", May: []string{"clr", "context", "unwind", "sim/image", "sim/machine", "sim/sched"},
		Test: []string{"sim"}},
	{Name: "sim", May: with(merged, "sim/image", "sim/machine", "sim/sched", "sim/vm"),
		Test: []string{"sim/worlds"}},
	{Name: "sim/rules", May: with(merged, "sim", "sim/image", "sim/machine", "sim/sched", "sim/vm")},
	{Name: "sim/story", May: []string{"sim/rules", "sim/sched"}},
	{Name: "sim/worlds", May: with(merged, "sim", "sim/image", "sim/machine", "sim/sched", "sim/vm")},
	{Name: "sim/conform", May: []string{"clr", "clr/api", "sim", "sim/image", "sim/machine",
		"sim/sched", "sim/vm"}, Test: words},

	{Name: "cmd/engine", May: with(merged, "symbol", "process/live", "report/wire", "sample/probe",
		"sample/outside", "sample/sampler", "sample/suspended", "sample/target")},
	{Name: "capi/client", Test: []string{"report/wire", "sample/probe", "unwind"}},
	{Name: "cmd/record/continuous",
		May: []string{"eventpipe/diagnostics", "internal/procstat", "report/collect", "report/export",
			"report/recording"},
		Test: []string{"testkit/needs", "testkit/cmptest"}},
	{Name: "cmd/seedwalk/cli",
		May: []string{"cmd/record/options", "process/program", "report/export",
			"sample/probe", "symbol", "symbol/server"}},
	{Name: "cmd/seedwalk/builder",
		May: []string{"clr", "clr/api", "cmd/record/options", "cmd/seedwalk/cli", "report/inspect", "sim",
			"sim/conform", "sim/image", "sim/rules", "sim/sched", "sim/story",
			"stack/capture", "testkit/replay"}},
	{Name: "cmd/seedwalk/doctor",
		May: []string{"clr/contract", "cmd/record", "cmd/record/options", "cmd/seedwalk/cli", "elf",
			"eventpipe/diagnostics", "internal/procstat", "process/live", "process/program",
			"sample/outside", "sample/paused", "sample/probe", "sample/sampler", "sample/suspended",
			"sample/target", "symbol", "unwind/module"}},
	{Name: "cmd/seedwalk/stack",
		May: []string{"clr/tasks", "context", "cmd/seedwalk/cli", "internal/procstat", "process/dump",
			"process/live",
			"report/hang", "sample/paused", "sample/probe", "sample/sampler", "sample/target", "stack/merge",
			"unwind"},
		Test: []string{"testkit/needs", "testkit/tempdir"}},
	{Name: "cmd/seedwalk/waits",
		May: []string{"cmd/record/options", "cmd/record/output", "cmd/seedwalk/cli", "eventpipe/diagnostics",
			"eventpipe/waits", "eventpipe/waits/report", "eventpipe/waits/session",
			"process/program", "sample/blocked"}},
	{Name: "cmd/seedwalk/top",
		May: []string{"cmd/record", "cmd/record/options", "cmd/seedwalk/cli", "eventpipe/diagnostics",
			"eventpipe/nettrace", "eventpipe/nettrace/clrevent", "internal/procstat", "report/export"}},
	{Name: "cmd/seedwalk", May: []string{"cmd/engine", "cmd/record", "cmd/record/continuous",
		"cmd/record/options", "cmd/record/output", "cmd/seedwalk/builder", "cmd/seedwalk/cli",
		"cmd/seedwalk/doctor", "cmd/seedwalk/stack", "cmd/seedwalk/top", "cmd/seedwalk/waits",
		"eventpipe/waits/session", "internal/wholefile", "report/collect", "report/diff", "report/export",
		"report/recording", "report/trace", "report/wire", "sample/alarm", "symbol"},
		Test: []string{"*"}},

	// The test kit. An assembler shares nothing with the reader it is for.
	{Name: "testkit/expect"},
	{Name: "testkit/cmptest", May: []string{"testkit/expect"}},
	{Name: "testkit/must", May: []string{"testkit/expect"}},
	{Name: "testkit/golden"},
	{Name: "testkit/peasm"},
	{Name: "testkit/pdbfile", May: []string{"testkit/peasm"}},
	{Name: "testkit/elfasm"},
	{Name: "testkit/bundle", May: []string{"internal/buf"}},
	{Name: "testkit/moduleroot"},
	{Name: "testkit/needs", May: []string{"testkit/bundle", "testkit/moduleroot", "testkit/must"}},
	{Name: "testkit/cworld", May: []string{"sim/sched", "testkit/must"}},
	{Name: "testkit/fakeprof"},
	{Name: "testkit/nettracefile"},
	{Name: "testkit/waittruth", May: []string{"eventpipe/waits"}},
	{Name: "testkit/tempdir"},
	{Name: "testkit/pty"},
	{Name: "testkit/threadprog", May: []string{"testkit/moduleroot", "testkit/must", "testkit/tempdir"}},
	{Name: "testkit/armrun"},
	{Name: "testkit/gdb"},
	{Name: "testkit/browser"},
	{Name: "testkit/epilog", May: with(words, formats)},
	{Name: "testkit/snap", May: with(tables, "testkit/moduleroot")},
	{Name: "testkit/walktest",
		May: with(tables, "unwind", "testkit/elfasm", "testkit/expect", "testkit/must", "testkit/snap")},
	{Name: "testkit/pevec", May: with(tables, "testkit/moduleroot", "testkit/snap", "testkit/peasm")},
	{Name: "testkit/clrasm"},
	{Name: "testkit/fakestack", May: with(tables, "unwind", "clr", "testkit/elfasm")},
	{Name: "testkit/stepper", May: with(walkers, "process/live")},

	// What only builders run.
	{Name: "testkit/tools/benchpair"},
	{Name: "testkit/tools/cost"},
	{Name: "testkit/tools/bundle", May: []string{"testkit/bundle"}},
	{Name: "testkit/tools/mutate", May: []string{"testkit/moduleroot"}},
	{Name: "testkit/tools/release", Test: []string{"testkit/needs"}},
	{Name: "testkit/tools/summary"},
	{Name: "testkit/tools/textlint"},
	{Name: "testkit/arch"},

	// The module's documentation and its examples.
	{Name: ".", Test: with(merged, "process/live")},

	// Fuzzing and measuring: above everything.
	{Name: "fuzz", Test: everything},
	{Name: "bench", Test: with(merged, "bench/peer", "stack/capture", "sample/agent", "process/live")},
	{Name: "bench/oracle", Test: tables},
	{Name: "bench/peer", May: with(merged, "stack/capture", "stack/raw", "testkit/snap")},
	{Name: "bench/wineunwind", Test: walkers},
	{Name: "bench/work", Test: []string{"testkit/tempdir"}},
}

// debts are edges that should not exist, with the reason why they still do. Delete a debt here once it is
// paid.
var debts = map[string]string{}

// with combines groups and names.
func with(parts ...any) (out []string) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			out = append(out, p)
		case []string:
			out = append(out, p...)
		}
	}
	return out
}

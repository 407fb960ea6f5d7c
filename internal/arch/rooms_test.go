package arch

// room is a package and what of the project it may import. A file may import
// what stands in May; a test also what its own package may, itself, and the test
// kit, and what stands in Test.
type room struct {
	Name string
	May  []string
	Test []string
}

// Short names for what is imported together; a package is above all of it.
var (
	words   = []string{"context", "memory"}
	formats = []string{"pe", "pe/rva", "pe/amd64", "pe/arm64", "elf", "cfi", "internal/buf", "internal/wholefile"}
	tables  = with(words, formats, "module")
	walkers = with(tables, "unwind", "unwind/nearcall", "unwind/amd64", "unwind/arm64", "unwind/walker")
	runtime = with(walkers, "clr", "clr/managed", "clr/contract", "clr/api")
	merged  = with(runtime, "seed", "snapshot", "merge")
)

// everything is what tests above all rooms may import: anything but a command.
var everything = []string{"*"}

// rooms lists every package, from the bottom up: a package may import only what
// stands above it in this list. A new package is one more line, at the highest
// place that it can have.
var rooms = []room{
	// Layouts, memory, formats: they know nothing of unwinding.
	{Name: "internal/buf"},
	{Name: "internal/wholefile"},
	{Name: "internal/emulator"},
	{Name: "context"},
	{Name: "memory"},
	{Name: "export", Test: words},
	{Name: "pe/rva", May: []string{"context", "internal/buf"}},
	{Name: "pe/amd64", May: []string{"context", "internal/buf", "pe/rva"}, Test: formats},
	{Name: "pe/arm64", May: []string{"context", "internal/buf", "pe/rva"}, Test: formats},
	{Name: "pe", May: []string{"context", "internal/buf", "internal/wholefile", "pe/rva", "pe/amd64", "pe/arm64"}},
	{Name: "elf", May: []string{"context", "internal/buf", "internal/wholefile"}, Test: []string{"cfi"}},
	{Name: "cfi", May: []string{"internal/buf", "context", "memory"}, Test: tables},
	{Name: "module", May: with(words, formats)},
	{Name: "symbol/clrnames"},
	{Name: "symbol", May: with(tables, "symbol/clrnames")},

	// Unwinding: it knows nothing of the CLR.
	{Name: "unwind", May: with(words, "module"), Test: with(tables, "unwind/amd64", "unwind/arm64")},
	{Name: "unwind/nearcall"},
	{Name: "unwind/amd64", May: with(tables, "unwind", "unwind/nearcall")},
	{Name: "unwind/arm64", May: with(tables, "unwind", "unwind/nearcall")},
	{Name: "unwind/walker", May: with(tables, "unwind", "unwind/amd64", "unwind/arm64")},
	{Name: "wire", May: []string{"context", "unwind"}},

	// The CLR: it knows no operating system.
	{Name: "clr/demangle"},
	{Name: "clr", May: with(words, "unwind"), Test: walkers},
	{Name: "clr/api", May: with(words, "clr")},
	{Name: "clr/managed", May: with(walkers, "clr"), Test: []string{"clr/contract", "internal/testkit/elfasm"}},
	{Name: "clr/contract", May: with(walkers, "clr", "clr/managed"), Test: []string{"live", "internal/testkit/needs"}},
	{Name: "clr/metadata", May: with(words, "clr/demangle"), Test: []string{"internal/testkit/clrasm"}},
	{Name: "clr/naming", May: with(words, "clr/demangle", "clr/contract", "clr/metadata", "pe")},
	{Name: "seed", May: with(walkers, "clr")},
	{Name: "snapshot", May: with(walkers, "clr", "seed")},
	{Name: "merge", May: with(walkers, "clr", "clr/managed", "seed"), Test: []string{"sim/image"}},

	// What is mapped where, in a process or a file: nothing of frames.
	{Name: "live", May: with(tables, "internal/emulator")},
	{Name: "dump", May: with(tables, "live")},
	{Name: "capture", May: with(tables, "live"), Test: walkers},

	// When to sample whom.
	{Name: "sample/perfevent", May: []string{"context"}},
	{Name: "sample/cpuring", May: []string{"sample/perfevent"}},

	// The runtime's own reports.
	{Name: "diagnostics", May: []string{"internal/emulator"}},
	{Name: "nettrace", May: []string{"internal/buf"}},
	{Name: "nettrace/clrevent", May: []string{"internal/buf", "nettrace"}},
	{Name: "waits", May: []string{"nettrace", "nettrace/clrevent", "symbol"}, Test: []string{"diagnostics"}},
	{Name: "waits/report", May: []string{"waits"}, Test: []string{"nettrace", "nettrace/clrevent"}},

	// One process's samples, in any process; the profilers around it.
	{Name: "internal/quiet"},
	{Name: "internal/raw", May: merged},
	{Name: "internal/stream", May: with(merged, "wire", "internal/raw")},
	{Name: "agent", May: with(merged, "clr/demangle", "clr/metadata", "clr/naming", "wire", "internal/quiet", "internal/raw", "internal/stream", "symbol")},
	{Name: "probe", May: with(merged, "live", "wire", "agent"), Test: []string{"sim/sched"}},
	{Name: "outside", May: with(merged, "nettrace/clrevent", "symbol", "clr/naming", "clr/metadata", "live", "wire", "internal/raw", "internal/stream", "probe", "sample/cpuring", "sample/perfevent"), Test: []string{"dump", "sim", "sim/image", "sim/machine", "sim/worlds"}},
	{Name: "waits/blocked", May: with(merged, "live", "outside", "waits")},
	{Name: "waits/session", May: []string{"diagnostics", "elf", "live", "nettrace/clrevent", "pe", "symbol", "waits"}, Test: []string{"waits/blocked"}},
	{Name: "profiler/host", May: with(merged, "clr/demangle", "clr/metadata", "clr/naming", "live", "internal/quiet", "internal/wholefile", "agent"), Test: []string{"internal/testkit/tempdir", "sim/sched"}},
	{Name: "profiler", May: []string{"agent", "profiler/host"}},
	{Name: "profiler/e2e", Test: everything},
	{Name: "profiler/e2e/testprof/oracle", May: with(merged, "agent")},
	{Name: "profiler/e2e/testprof/torture", May: []string{"agent", "clr", "internal/quiet"}},
	{Name: "capi", May: with(merged, "symbol", "live", "internal/quiet", "internal/raw", "agent", "dump", "profiler/host"),
		Test: []string{"sim", "sim/image", "sim/vm", "sim/worlds"}},
	{Name: "capi/checked"},

	// The tool.
	{Name: "internal/program", May: formats},
	{Name: "inspect", May: with(tables, "symbol")},
	{Name: "report/collect", May: []string{"export", "unwind", "wire"}},
	{Name: "report/recording", May: []string{"report/collect", "wire"}, Test: []string{"export", "unwind"}},
	{Name: "report/diff", May: []string{"export"}},
	{Name: "record", May: with(merged, "agent", "export", "report/collect", "report/recording", "internal/program", "live", "dump", "probe", "outside", "symbol", "wire", "diagnostics", "nettrace", "nettrace/clrevent", "waits", "waits/report", "waits/blocked", "waits/session")},
	{Name: "internal/testkit/judge", May: with(walkers, "clr", "clr/managed", "inspect", "internal/testkit/pevec", "internal/testkit/snap", "internal/testkit/peasm", "internal/testkit/elfasm")},
	{Name: "internal/testkit/judgetest", May: []string{"internal/testkit/judge", "internal/testkit/pevec", "internal/testkit/snap"}},
	{Name: "replay", May: with(walkers, "inspect", "internal/testkit/judge", "internal/testkit/pevec", "internal/testkit/snap", "internal/testkit/peasm")},

	// Suspended worlds: product code under every schedule, on images of their own.
	{Name: "sim/sched"},
	{Name: "sim/image", Test: with(walkers, "sim/machine")},
	{Name: "sim/machine", May: []string{"context", "sim/image"}, Test: walkers},
	{Name: "sim/vm", May: []string{"clr", "context", "unwind", "sim/image", "sim/machine", "sim/sched"}, Test: []string{"sim"}},
	{Name: "sim", May: with(merged, "sim/image", "sim/machine", "sim/sched", "sim/vm"), Test: []string{"sim/worlds"}},
	{Name: "sim/rules", May: with(merged, "sim", "sim/image", "sim/machine", "sim/sched", "sim/vm")},
	{Name: "sim/story", May: []string{"sim/rules", "sim/sched"}},
	{Name: "sim/worlds", May: with(merged, "sim", "sim/image", "sim/machine", "sim/sched", "sim/vm")},
	{Name: "sim/conform", May: []string{"clr", "clr/api", "sim", "sim/image", "sim/machine", "sim/sched", "sim/vm"}, Test: words},

	{Name: "cmd/seedwalk", May: with(merged, "capture", "export", "report/collect", "report/diff", "report/recording", "probe", "inspect", "internal/program", "live", "dump", "outside", "record", "replay", "symbol", "wire", "diagnostics", "nettrace", "nettrace/clrevent", "waits", "waits/report", "waits/blocked", "waits/session",
		"sim", "sim/image", "sim/conform", "sim/rules", "sim/sched", "sim/story")},

	// The test kit. An assembler shares nothing with the reader it is for.
	{Name: "internal/testkit/cmptest"},
	{Name: "internal/testkit/peasm"},
	{Name: "internal/testkit/elfasm"},
	{Name: "internal/testkit/bundle", May: []string{"internal/buf"}},
	{Name: "internal/testkit/moduleroot"},
	{Name: "internal/testkit/needs", May: []string{"internal/testkit/bundle", "internal/testkit/moduleroot"}},
	{Name: "internal/testkit/cworld", May: []string{"sim/sched"}},
	{Name: "internal/testkit/fakeprof"},
	{Name: "internal/testkit/nettracefile"},
	{Name: "internal/testkit/waittruth", May: []string{"waits"}},
	{Name: "internal/testkit/tempdir"},
	{Name: "internal/testkit/armrun"},
	{Name: "internal/testkit/gdb"},
	{Name: "internal/testkit/browser"},
	{Name: "internal/testkit/epilog", May: with(words, formats)},
	{Name: "internal/testkit/snap", May: with(tables, "internal/testkit/moduleroot")},
	{Name: "internal/testkit/walktest", May: with(tables, "unwind", "internal/testkit/snap")},
	{Name: "internal/testkit/pevec", May: with(tables, "internal/testkit/moduleroot", "internal/testkit/snap", "internal/testkit/peasm")},
	{Name: "internal/testkit/clrasm"},
	{Name: "internal/testkit/fakestack", May: with(tables, "unwind", "clr", "internal/testkit/elfasm")},
	{Name: "internal/testkit/stepper", May: with(walkers, "live")},

	// What only builders run.
	{Name: "internal/tools/benchpair"},
	{Name: "internal/tools/cost"},
	{Name: "internal/tools/bundle", May: []string{"internal/testkit/bundle"}},
	{Name: "internal/tools/mutate", May: []string{"internal/testkit/moduleroot"}},
	{Name: "internal/tools/summary"},
	{Name: "internal/tools/textlint"},
	{Name: "internal/arch"},

	// The module's documentation and its examples.
	{Name: ".", Test: merged},

	// Fuzzing and measuring: above everything.
	{Name: "fuzz", Test: everything},
	{Name: "bench", Test: with(merged, "bench/peer", "capture", "agent", "live")},
	{Name: "bench/oracle", Test: tables},
	{Name: "bench/peer", May: with(merged, "capture", "internal/raw", "internal/testkit/snap")},
	{Name: "bench/wineunwind", Test: walkers},
	{Name: "bench/work", Test: []string{"internal/testkit/tempdir"}},
}

// debts are edges that should not be, and why they still are. One that is paid
// must be deleted here.
var debts = map[string]string{}

// with puts groups and names together.
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

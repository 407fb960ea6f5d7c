package arch

import "path"

// injected are files that break a rule.
var injected = []struct {
	name, file, text, rule string
}{
	{"an image writer reads", "sim/image/x.go", imports("image", "cfi"), "assemblers"},
	{"upwards for Windows only", "stack/seed/x_windows.go", imports("seed", "cmd/record"), "downwards"},
	{"upwards", "process/live/x.go", imports("live", "cmd/record"), "downwards"},
	{"upwards for ARM64 only", "unwind/x_arm64.go", imports("unwind", "stack/merge"), "downwards"},
	{"upwards behind a constraint", "unwind/module/x.go", "//go:build windows && arm64\n\n" + imports("module", "unwind"), "downwards"},
	{"upwards with C only", "profiler/x.go", "//go:build cgo\n\n" + imports("main", "cmd/record"), "downwards"},
	{"upwards without C only", "profiler/x.go", "//go:build !cgo\n\n" + imports("main", "cmd/record"), "downwards"},
	{"upwards behind a tag", "clr/x.go", "//go:build oracle\n\n" + imports("clr", "process/live"), "downwards"},
	{"upwards in a test", "pe/x_test.go", imports("pe", "unwind/amd64"), "downwards"},
	{"upwards in a test from outside", "unwind/amd64/x_test.go", imports("amd64_test", "cmd/record"), "downwards"},
	{"a table knows unwinding", "cfi/x.go", imports("cfi", "unwind"), "downwards"},
	{"unwinding knows the CLR", "unwind/arm64/x.go", imports("arm64", "clr"), "downwards"},
	{"the CLR knows the system", "clr/contract/x.go", imports("contract", "process/live"), "downwards"},
	{"one architecture knows the other", "unwind/amd64/x.go", imports("amd64", "unwind/arm64"), "downwards"},
	{"one format knows the other", "pe/x.go", imports("pe", "elf"), "downwards"},
	{"the PE assembler reads", "testkit/peasm/x.go", imports("peasm", "pe"), "assemblers"},
	{"the ELF assembler reads", "testkit/elfasm/x.go", imports("elfasm", "internal/buf"), "assemblers"},
	{"an image writer reads on ARM64", "sim/image/x_arm64.go", imports("image", "pe"), "assemblers"},
	{"the product uses the kit", "unwind/module/x.go", imports("module", "testkit/peasm"), "kit"},
	{"the product uses what judges it", "cmd/record/x.go", imports("record", "fuzz"), "kit"},
	{"replay uses what is measured", "testkit/replay/x.go", imports("replay", "bench/peer"), "downwards"},
	{"a command is imported", "cmd/record/x.go", imports("record", "cmd/seedwalk"), "commands"},
	{"a command that is no cmd is imported", "testkit/bundle/x.go", imports("bundle", "testkit/tools/mutate"), "commands"},
	{"a test imports a command", "cmd/record/x_test.go", imports("record", "cmd/seedwalk"), "commands"},
	{"C in Go", "stack/merge/x.go", "package merge\n\nimport \"C\"\n", "cgo"},
	{"C in Go for Windows", "process/live/x_windows.go", "package live\n\nimport \"C\"\n", "cgo"},
	{"a comparer in the product", "report/export/x.go", other("export", "github.com/google/go-cmp/cmp"), "tests only"},
	{"an oracle in the product", "cfi/x.go", other("cfi", "github.com/go-delve/delve/pkg/dwarf/regnum"), "tests only"},
	{"the hot path starts programs", "unwind/amd64/x_windows.go", other("amd64", "os/exec"), "hot path"},
	{"the net below the hot path", "unwind/module/x.go", other("module", "net/http"), "hot path"},
	{"a disassembler below the hot path", "context/memory/x.go", other("memory", "golang.org/x/arch/x86/x86asm"), "hot path"},
	{"a package that is not listed", "internal/new/x.go", "package fresh\n", "listed"},
	{"a file that nobody builds", "pe/x.go", "//go:build plan9\n\npackage pe\n", "dead"},
}

func imports(pkg, to string) string { return other(pkg, self+"/"+to) }

func other(pkg, to string) string { return "package " + pkg + "\n\nimport _ \"" + to + "\"\n" }

func folder(file string) string { return path.Dir(file) }

package category

import (
	"slices"
	"strings"
)

// Caller is the frame that calls a run of nameless frames. The zero value means that there is no such frame.
type Caller struct{ Class, Name, Module string }

// RunRole returns what a run of nameless frames of the runtime does, "[runtime]" if that is uncertain.
// The module or the caller decides. Only the JIT compiler calls its interface to the runtime. A
// function without a name that compiled code calls is a helper: for casts, allocation, static fields,
// or write barriers. thread is the name of the thread.
func RunRole(module string, c Caller, thread string) string {
	switch {
	case IsJIT(module), c.Class == "runtime" && IsJIT(c.Module):
		return "[JIT]"
	case strings.Contains(module, "clrgc"):
		return "[GC]"
	case c.Class == "managed", c.Class == "stub":
		return "[runtime helper]"
	case slices.Contains(threadStarts, c.Name):
		return ThreadRole(thread)
	}
	return "[runtime]"
}

// IsJIT reports whether a module is the JIT compiler.
func IsJIT(module string) bool { return strings.Contains(module, "clrjit") }

// threadStarts are the functions of C libraries that call the first function of a thread.
var threadStarts = []string{"start_thread", "clone", "clone3", "__clone"}

// ThreadRole returns what a thread of the runtime does, by the name that the runtime gives it.
// Linux keeps 15 characters of that.
func ThreadRole(name string) string {
	switch name {
	case ".NET Tiered Com", ".NET Tiered Compilation Worker":
		return "[tiered compilation]"
	case ".NET Finalizer":
		return "[finalizer]"
	case ".NET BGC", ".NET Server GC", ".NET GC":
		return "[GC]"
	}
	return "[thread start]"
}

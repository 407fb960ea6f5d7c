// Package category assigns samples to categories: user code, the class library, garbage collection, the
// JIT compiler, and so on.
//
// Sources: measured on stacks of .NET 8 to 10; dotnet/runtime src/coreclr names the functions.
//
// Glossary. A kind is what one frame does. A category is what a stack does. A role is what a thread of
// the runtime does, by its name.
//
// Strategy. A stack that spins is spinning, also while it yields or sleeps for a moment in between.
// A stack whose leaf waits is waiting. Otherwise the frames are examined from the leaf up to the
// first managed one: a frame of the collector, the compiler, the type loader, or the native part of the
// class library decides. Frames of native libraries that the runtime calls belong to the runtime. If
// no frame decides, threads of the collector and of tiered compilation do.
//
// Known gaps: without symbol files, functions of the collector and the type loader in libcoreclr have
// no names. Their time on threads of the program is then counted as other time of the runtime.
package category

import (
	"regexp"
	"strings"
)

// Category is what a stack spends its time on.
type Category uint8

const (
	User    Category = iota // managed code of the program
	Library                 // the class library, with its native part
	Native                  // native libraries
	GC
	JIT
	Loading  // types and methods are loaded
	Runtime  // the rest of the runtime
	Spinning // busy, to get a lock or a signal without being blocked
	Waiting
	Unknown // frames are missing, or there was no sample
)

// Names are the names of the categories.
var Names = []string{"user code", "class library", "native libraries", "GC", "JIT", "type loading",
	"other runtime", "spinning", "waiting", "unknown"}

func (c Category) String() string { return Names[c] }

// Kind is what a frame does.
type Kind uint8

const (
	neutral Kind = iota // stubs and the kernel: their callers decide
	user
	library
	shim // the native part of the class library
	native
	gc
	jit
	loading
	runtime
	spin // a function that waits without being blocked
	wait // a function in which threads wait
	gap
)

var (
	// The page has the expressions of waits in fold.js too.
	nativeWaits = regexp.MustCompile(`^(__futex_abstimed_wait\w*|futex_wait\w*|do_futex_wait\w*|\w*lll_\w*wait\w*|_*pthread_cond_(timed|clock)?wait\w*|` +
		`_*sem_(timed|clock)?wait\w*|__new_sem_wait\w*|_*epoll_p?wait2?|_*p?poll|_*p?select|_*(clock_)?nanosleep\w*|_*sigwait\w*|_*sigtimedwait\w*|_*rt_sigtimedwait|` +
		`_*accept4?|_*wait4|_*waitpid|(Nt|Zw)(WaitFor\w+|DelayExecution|RemoveIoCompletion\w*|SignalAndWaitForSingleObject)|win32u?\.?NtUserMsgWait\w*)$`)
	managedWaits = regexp.MustCompile(`^System\.Threading\.(Thread\.(Sleep|Join)|WaitHandle\.Wait\w*|Monitor\.(Wait|ObjWait|Enter\w*)|LowLevel(LifoSemaphore|Monitor)\.Wait\w*)([<(].*)?$`)
	spins        = regexp.MustCompile(`^System\.Threading\.((SpinWait|SpinLock|LowLevelSpinWaiter)\.|Thread\.(\w*SpinWait\w*|Yield\w*|UninterruptibleSleep0)([<(].*)?$)`)

	collector = regexp.MustCompile(`^((WKS|SVR)::|gc_heap::|GCHeap::|GCInterface_|GCToEEInterface::|System\.GC\.)`)
	compiler  = regexp.MustCompile(`^(CEEInfo|CEEJitInfo|CILJit|Compiler|EEJitManager)::|^UnsafeJitFunction|^MethodDesc::(JitCompile|PrepareI)|TieredCompilation`)
	loader    = regexp.MustCompile(`^(ClassLoader|MethodTableBuilder|EEClass|Assembly|AssemblyNative)::|^MethodTable::(DoFullyLoad|DoRunClassInit|CheckRunClassInit|Load)|^MethodDesc::DoPrestub|^RuntimeTypeHandle_|^System\.RuntimeTypeHandle\.`)

	frameworks = regexp.MustCompile(`^(System|Microsoft)\.|^(mscorlib|netstandard|WindowsBase|FSharp\.Core)(\.|$)`)
)

// Frame returns the kind of a frame of a class, as package export names it.
func Frame(class, name, module string) Kind {
	switch class {
	case "managed":
		return managed(name, module)
	case "native":
		if nativeWaits.MatchString(name) {
			return wait
		}
		return native
	case "runtime":
		return ofRuntime(name, module)
	case "gap", "unsampled":
		return gap
	}
	return neutral
}

func managed(name, module string) Kind {
	switch {
	case spins.MatchString(name):
		return spin
	case managedWaits.MatchString(name):
		return wait
	case module != "" && frameworks.MatchString(module), module == "" && frameworks.MatchString(name):
		return library
	}
	return user
}

func ofRuntime(name, module string) Kind {
	switch {
	case nativeWaits.MatchString(name):
		return wait
	case strings.Contains(module, "clrgc"), collector.MatchString(name):
		return gc
	case strings.Contains(module, "clrjit"), compiler.MatchString(name):
		return jit
	case loader.MatchString(name):
		return loading
	case strings.Contains(module, "System."):
		return shim
	}
	return runtime
}

// decided are the kinds that decide without their callers.
var decided = map[Kind]Category{gc: GC, jit: JIT, loading: Loading, shim: Library}

// Stack returns the category of n frames, leaf first, of a thread with a role: "[GC]",
// "[tiered compilation]", or any other.
func Stack(n int, kind func(i int) Kind, role string) Category {
	if spinning(n, kind) {
		return Spinning
	}
	rest := Unknown // the category if no caller decides
	for i := range n {
		k := kind(i)
		c, ok := decided[k]
		switch {
		case k == wait && rest == Unknown:
			return Waiting
		case ok:
			return c
		case rest != Unknown && (k == gap || k == user || k == library):
			return rest
		case k == gap:
			return Unknown
		case k == user:
			return User
		case k == library:
			return Library
		case k == native && rest == Unknown:
			rest = Native
		case k == runtime:
			rest = Runtime
		}
	}
	switch {
	case role == "[GC]":
		return GC
	case role == "[tiered compilation]":
		return JIT
	}
	return rest
}

// spinning reports whether the innermost managed frame outside of waits spins.
func spinning(n int, kind func(i int) Kind) bool {
	for i := range n {
		switch kind(i) {
		case spin:
			return true
		case user, library, gap:
			return false
		}
	}
	return false
}

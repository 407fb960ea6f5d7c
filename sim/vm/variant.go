// Package vm is the simulated CLR. It does what the profiling API of real CLRs
// does, as far as asynchronous stack walks can see it.
//
// Sources: dotnet/coreclr v2.2.2 and dotnet/runtime, src/vm (src/coreclr/vm)
// proftoeeinterfaceimpl.cpp, stackwalk.cpp, threadsuspend.cpp, excep.cpp; the
// reference of ICorProfilerInfo2::DoStackSnapshot; runs on .NET Core 2.0.0,
// 2.2.2 and .NET 9 and 10.
//
// Glossary. A thread in *cooperative* mode runs code that handles managed
// references and must be stopped for a collection; in *preemptive* mode it runs
// anything else and is stopped only when it comes back. The *Frame chain* is
// the list of records by which the CLR finds managed frames below unmanaged
// ones. A *marker* is the callback with FunctionID 0.
//
// Strategy. Table holds the decisions of DoStackSnapshot; the first row that
// fits decides. The walk uses the rows of package image and the Frame chain, and
// never seedwalk's readers. Each place where the real CLR can wait or be
// interrupted is a scheduling point.
//
// Known gaps: x86; detaching is a flag; edit-and-continue, debugger filter
// contexts and COM are not modelled.
package vm

// Variant is a CLR as one of its releases behaves.
type Variant uint8

const (
	Framework20   Variant = iota // .NET Framework 2.0, as documented
	Core22Windows                // .NET Core 2.0-2.2 on Windows
	Net10Windows                 // .NET 9 and 10 on Windows
	Net9Linux                    // .NET 9 on Linux
	Net10Linux                   // .NET 10 on Linux
	variantCount
)

var variantNames = [...]string{"framework-2.0", "core-2.2-windows", "net-10-windows",
	"net-9-linux", "net-10-linux"}

func (v Variant) String() string {
	if int(v) < len(variantNames) {
		return variantNames[v]
	}
	return "variant?"
}

// Variants lists all of them.
func Variants() []Variant {
	return []Variant{Framework20, Core22Windows, Net10Windows, Net9Linux, Net10Linux}
}

// Windows reports whether the CLR can suspend a single thread itself.
func (v Variant) Windows() bool { return v < Net9Linux }

// HasSuspendRuntime reports whether the profiling API has SuspendRuntime
// (ICorProfilerInfo10, since .NET Core 3.0).
func (v Variant) HasSuspendRuntime() bool { return v >= Net10Windows }

// lazyFrames reports whether a helper leaves a frame whose caller the walk finds by
// unwinding, with the system's unwind data: LazyMachState::unwindLazyState. Source:
// gmsamd64.cpp, Thread::VirtualUnwindCallFrame.
func (v Variant) lazyFrames() bool { return v == Framework20 || v == Core22Windows }

// ContextSize is the size of the CONTEXT that callbacks get, in bytes.
func (v Variant) ContextSize(arm64 bool) int {
	switch {
	case arm64 && v.Windows():
		return 912
	case arm64:
		return 992
	case v == Net9Linux:
		return 3104
	case v == Net10Linux:
		return 3232
	}
	return 1232
}

// set is a set of variants.
type set uint8

const (
	all     set = 1<<variantCount - 1
	windows set = 1<<Framework20 | 1<<Core22Windows | 1<<Net10Windows
	unix    set = 1<<Net9Linux | 1<<Net10Linux
)

func (s set) has(v Variant) bool { return s>>v&1 != 0 }

// Names lists the variants of s.
func (s set) Names() (out []string) {
	if s == all {
		return []string{"all"}
	}
	for v := range variantCount {
		if s.has(v) {
			out = append(out, v.String())
		}
	}
	return out
}

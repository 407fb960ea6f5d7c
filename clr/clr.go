// Package clr holds the words of the .NET profiling API and the Runtime
// interface behind which the real CLR and a simulated one look the same.
//
// Sources: dotnet/runtime src/coreclr/inc/corprof.idl and corerror.xml;
// docs/design/coreclr/botr/profilability.md.
//
// Glossary. A FunctionID names a method's code to the profiling API; 0 in a
// snapshot marks one block of unmanaged frames (a *marker*). A ThreadID names
// a managed thread, which is not its kernel thread id (TID).
//
// Strategy: words only. What a runtime does is behind Runtime and Threads, the two ways
// to stop a target; what it answers is an HRESULT, spelled as corerror.xml does.
//
// Known gaps: of the profiling API only what stacks need; all of it as data is in
// package api.
package clr

import "fmt"

// FunctionID is the CLR's handle of a method; 0 stands for unmanaged code.
type FunctionID uint64

// ThreadID is the CLR's handle of a managed thread.
type ThreadID uint64

// HRESULT is a COM result; the high bit says failure.
type HRESULT uint32

// The results this project decides on. Source: corerror.xml, winerror.h.
const (
	S_OK                                  HRESULT = 0
	S_FALSE                               HRESULT = 1
	E_NOTIMPL                             HRESULT = 0x80004001
	E_FAIL                                HRESULT = 0x80004005
	E_UNEXPECTED                          HRESULT = 0x8000FFFF
	E_INVALIDARG                          HRESULT = 0x80070057
	CORPROF_E_NOT_MANAGED_THREAD          HRESULT = 0x80131355
	CORPROF_E_STACKSNAPSHOT_INVALID_TGT   HRESULT = 0x8013135E
	CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX HRESULT = 0x8013135F
	CORPROF_E_STACKSNAPSHOT_UNSAFE        HRESULT = 0x80131360
	CORPROF_E_STACKSNAPSHOT_ABORTED       HRESULT = 0x80131361
	CORPROF_E_UNSUPPORTED_CALL_SEQUENCE   HRESULT = 0x80131363
	CORPROF_E_ASYNCHRONOUS_UNSAFE         HRESULT = 0x80131364
	CORPROF_E_PROFILER_DETACHING          HRESULT = 0x80131367
	CORPROF_E_RUNTIME_UNINITIALIZED       HRESULT = 0x80131371
	CORPROF_E_INCONSISTENT_WITH_FLAGS     HRESULT = 0x80131374
	CORPROF_E_SUSPENSION_IN_PROGRESS      HRESULT = 0x80131388
)

var hresultNames = map[HRESULT]string{
	S_OK: "S_OK", S_FALSE: "S_FALSE", E_NOTIMPL: "E_NOTIMPL", E_FAIL: "E_FAIL",
	E_UNEXPECTED: "E_UNEXPECTED", E_INVALIDARG: "E_INVALIDARG",
	CORPROF_E_NOT_MANAGED_THREAD:          "CORPROF_E_NOT_MANAGED_THREAD",
	CORPROF_E_STACKSNAPSHOT_INVALID_TGT:   "CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD",
	CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX: "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX",
	CORPROF_E_STACKSNAPSHOT_UNSAFE:        "CORPROF_E_STACKSNAPSHOT_UNSAFE",
	CORPROF_E_STACKSNAPSHOT_ABORTED:       "CORPROF_E_STACKSNAPSHOT_ABORTED",
	CORPROF_E_UNSUPPORTED_CALL_SEQUENCE:   "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE",
	CORPROF_E_ASYNCHRONOUS_UNSAFE:         "CORPROF_E_ASYNCHRONOUS_UNSAFE",
	CORPROF_E_PROFILER_DETACHING:          "CORPROF_E_PROFILER_DETACHING",
	CORPROF_E_RUNTIME_UNINITIALIZED:       "CORPROF_E_RUNTIME_UNINITIALIZED",
	CORPROF_E_INCONSISTENT_WITH_FLAGS:     "CORPROF_E_INCONSISTENT_WITH_FLAGS",
	CORPROF_E_SUSPENSION_IN_PROGRESS:      "CORPROF_E_SUSPENSION_IN_PROGRESS",
}

// Failed reports whether h is an error.
func (h HRESULT) Failed() bool { return h&0x80000000 != 0 }

// String returns the name of h where it has one, else its hexadecimal value.
func (h HRESULT) String() string {
	if n, ok := hresultNames[h]; ok {
		return n
	}
	return fmt.Sprintf("HRESULT %#08x", uint32(h))
}

// SuspensionRetry reports whether SuspendRuntime answered h because it cannot
// suspend just now, so that the caller may try again later: a collection is
// suspending, or the runtime has not finished starting.
func SuspensionRetry(h HRESULT) bool {
	return h == CORPROF_E_SUSPENSION_IN_PROGRESS || h == CORPROF_E_RUNTIME_UNINITIALIZED
}

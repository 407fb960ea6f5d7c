// Package clr holds the terms of the .NET profiling API, and the Runtime interface that hides whether a CLR
// is real or simulated.
//
// Sources: dotnet/runtime src/coreclr/inc/corprof.idl and corerror.xml;
// docs/design/coreclr/botr/profilability.md.
//
// Glossary. A FunctionID identifies a method's code in the profiling API; 0 in a snapshot marks one block of
// unmanaged frames (a *marker*). A ThreadID identifies a managed thread; it differs from the kernel thread id
// (TID).
//
// Strategy: only types and constants. Runtime and Threads are the two ways to stop a target; their results
// are HRESULTs, spelled as in corerror.xml.
//
// Known gaps: only the part of the profiling API that stacks need; package api has all of it as data.
package clr

import "fmt"

// FunctionID is the CLR's handle of a method; 0 stands for unmanaged code.
type FunctionID uint64

// ThreadID is the CLR's handle of a managed thread.
type ThreadID uint64

// HRESULT is a COM result; the high bit means failure.
type HRESULT uint32

// The results that this project handles. Source: corerror.xml, winerror.h.
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

// String returns the name of h, or its hexadecimal value if it has none.
func (h HRESULT) String() string {
	if n, ok := hresultNames[h]; ok {
		return n
	}
	return fmt.Sprintf("HRESULT %#08x", uint32(h))
}

// SuspensionRetry reports whether SuspendRuntime returned h because it cannot suspend at the moment: a
// collection is suspending, or the runtime has not finished starting. The caller may try again later.
func SuspensionRetry(h HRESULT) bool {
	return h == CORPROF_E_SUSPENSION_IN_PROGRESS || h == CORPROF_E_RUNTIME_UNINITIALIZED
}

package amd64

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/unwind/module"
)

// Windows' stubs of system calls, which have no unwind data. An asynchronous procedure may run on top of a
// thread that waits in one. Windows' dispatcher then has a machine frame. Wine's has the interrupted address
// in place of a return address, after an instruction that need not be a call.
//
// Source: Wine 8's ntdll.dll, and wine-mirror/wine dlls/ntdll/signal_x86_64.c (8.0), KiUserApcDispatcher.
// That Windows' own stubs end in syscall or int 2eh was not verified in one of its DLLs.

// maxSystemCall bounds the bytes of such a stub, up to its last return.
const maxSystemCall = 31

// systemCallBegin is its beginning: mov r10, rcx; mov eax, number.
var systemCallBegin = []byte{0x4c, 0x8b, 0xd1, 0xb8}

// systemCalls enter the kernel: syscall; int 2eh; Wine's call [7ffe1000h].
var systemCalls = [...][]byte{{0x0f, 0x05}, {0xcd, 0x2e}, {0xff, 0x14, 0x25, 0, 0x10, 0xfe, 0x7f}}

// behindSystemCall reports whether a stub's system call returns to ip.
func behindSystemCall(m *module.Module, ip uint64) bool {
	for n := uint64(maxSystemCall); n >= uint64(len(systemCallBegin)); n-- {
		code := m.Bytes(ip-n, int(n)+1)
		if len(code) == int(n)+1 && bytes.HasPrefix(code, systemCallBegin) && code[n] == 0xc3 {
			return slices.ContainsFunc(systemCalls[:],
				func(call []byte) bool { return bytes.HasSuffix(code[:n], call) })
		}
	}
	return false
}

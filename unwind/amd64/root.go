package amd64

import (
	"bytes"
	"slices"

	"github.com/seedwalk/seedwalk/unwind/module"
	"github.com/seedwalk/seedwalk/unwind/x86"
)

// Where stacks begin without unwind data that marks it: code entered by the kernel or through makecontext has
// no caller.

// Bounds of an entry point's own code.
const (
	maxRoot      = 48  // instructions
	maxRootBytes = 192 // of ld.so's _start, with all that follows its calls
)

// isRoot reports whether ip is in code without a caller.
func isRoot(m *module.Module, ip uint64) bool {
	if !m.SystemV() {
		return false
	}
	return inEntry(m, ip) || bytes.Equal(m.Bytes(ip, len(startContext)), startContext)
}

// startContext is the beginning of glibc's __start_context, to whose first byte the function of a makecontext
// returns: mov rsp, rbx; mov rdi, [rsp]; test rdi, rdi. Source: glibc
// sysdeps/unix/sysv/linux/x86_64/__start_context.S.
var startContext = []byte{0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff}

// inEntry reports whether ip is an instruction of the image's entry point: one that is reached from its first
// instruction, across calls and untaken jumps. Code after padding is another function.
func inEntry(m *module.Module, ip uint64) bool {
	at, ok := m.Entry()
	if !ok || ip-at >= maxRootBytes {
		return false
	}
	code := m.Bytes(at, maxRootBytes+x86.MaxInsn)
	var e emulator
	called := false
	for range maxRoot {
		if at == ip {
			return true
		}
		in := x86.Decode(code)
		if in.Size == 0 || called && (in.Op == 0x90 && in.Table == 0 || in.Op == 0x1f && in.Table == 1) {
			return false
		}
		switch e.run(&in, nil) {
		case flowCall:
			called = true
		case flowNext, flowBranch:
			called = false
		default:
			return false
		}
		at, code = at+uint64(in.Size), code[in.Size:]
	}
	return false
}

// giveResult are the instructions between a call and the next one that takes its result: mov rdi, rax; movsxd
// rdi, eax; mov edi, eax.
var giveResult = [...][]byte{{0x48, 0x89, 0xc7}, {0x48, 0x63, 0xf8}, {0x89, 0xc7}}

// lastCall reports whether ip is the return address of the main function of a thread or a program, or of the
// call that then ends the thread or program with the function's result. lastCall recognizes such code in
// images that export pthread_exit or exit and have hardly any unwind data: musl's start, start_c11, and
// libc_start_main_stage2. These functions never return, so a walk may end there. Their callers can hardly be
// found. Source: musl src/thread/pthread_create.c, src/env/__libc_start_main.c.
func lastCall(m *module.Module, ip uint64) bool {
	for _, p := range giveResult {
		size := uint64(len(p)) + 5 // of both instructions
		if endsWith(m, ip, p) || endsWith(m, ip-size, p) {
			return true
		}
	}
	return false
}

// endsWith reports whether the code at an address gives a result to a call that ends the thread or program.
func endsWith(m *module.Module, at uint64, give []byte) bool {
	rest, ok := bytes.CutPrefix(m.Bytes(at, len(give)+5), give)
	if !ok || len(rest) < 5 || rest[0] != 0xe8 {
		return false
	}
	to := at + uint64(len(give)+5) + signed32(rest[1:])
	return to != m.Bias && slices.Contains(m.Endings[:], to-m.Bias)
}

// nullPage is the end of the unmapped page at 0: a call through a null pointer leads into it.
const nullPage = 4096

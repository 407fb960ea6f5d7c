package x86

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"golang.org/x/arch/x86/x86asm"
)

// realCode returns the code of libraries of this machine, by address.
func realCode(t *testing.T) (out [][]byte) {
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"} {
		f, err := elf.Open(path)
		if err != nil || f.Arch() != context.ArchAMD64 {
			continue
		}
		for _, s := range f.Segments() {
			if b, ok := f.BytesAt(s.Vaddr, int(s.Filesz)); ok && s.Executable() {
				out = append(out, b)
			}
		}
	}
	if len(out) == 0 {
		t.Skip("SKIPPED-CHECK: no x86-64 library here")
	}
	return out
}

// TestDecodeReal compares lengths with another decoder's, at each instruction of real libraries that it
// knows: it does not know AVX.
func TestDecodeReal(t *testing.T) {
	n, differ := 0, 0
	for _, code := range realCode(t) {
		for at := 0; at+MaxInsn <= len(code) && n < 2_000_000; {
			want, err := x86asm.Decode(code[at:], 64)
			got := Decode(code[at:])
			if err != nil || got.VEX || want.Len == 1 && want.Prefix[0] != 0 { // nor endbr64, nor data
				at += max(int(got.Size), 1)
				continue
			}
			n++
			if int(got.Size) != want.Len {
				if differ++; differ < 20 {
					t.Errorf("% x: %d bytes, want %d (%v)", code[at:at+MaxInsn], got.Size, want.Len, want)
				}
			}
			at += want.Len
		}
	}
	t.Logf("%d instructions, %d differ", n, differ)
}

// TestDecodeObjdump compares lengths with objdump's, including AVX.
func TestDecodeObjdump(t *testing.T) {
	const path = "/lib/x86_64-linux-gnu/libm.so.6"
	f, err := elf.Open(path)
	if err != nil || f.Arch() != context.ArchAMD64 {
		t.Skip("SKIPPED-CHECK: no x86-64 libm here")
	}
	out, err := exec.Command("objdump", "-d", "-j", ".text", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Skipf("SKIPPED-CHECK: objdump cannot run here (%s): %v", runtime.GOOS, err)
	}
	last, n, differ, text := uint64(0), 0, 0, ""
	for line := range strings.Lines(string(out)) {
		addr, what, ok := strings.Cut(strings.TrimSpace(line), ":")
		at, err := strconv.ParseUint(addr, 16, 64)
		if !ok || err != nil {
			last = 0
			continue
		}
		b, _ := f.BytesAt(last, MaxInsn)
		if last != 0 && b != nil && !strings.Contains(text, "(bad)") {
			n++
			if b[0] == 0x9b && at-last > 1 { // fwait: objdump treats it as part of the next instruction
				b, last = b[1:], last+1
			}
			if got := Decode(b); uint64(got.Size) != at-last {
				if differ++; differ < 20 {
					t.Errorf("% x: %d bytes, want %d (%s)", b, got.Size, at-last, text)
				}
			}
		}
		last, text = at, strings.TrimSpace(what)
	}
	t.Logf("%d instructions, %d differ", n, differ)
}

// The registers that an instruction changes, where the opcode alone does not show it.
func TestWrites(t *testing.T) {
	const ax, cx, dx, bx, r8 = 1 << context.RAX, 1 << context.RCX, 1 << context.RDX,
		1 << context.RBX, 1 << context.R8
	for _, c := range []struct {
		name, code string
		want       uint16
	}{
		{"mov ebx, ds", "\x8c\xdb", bx}, {"mov [rbx], ds", "\x8c\x1b", 0}, {"lahf", "\x9f", ax},
		{"xlat", "\xd7", ax}, {"loop", "\xe2\xfe", cx},
		{"nop", "\x90", 0}, {"xchg r8, rax", "\x49\x90", ax | r8}, {"xchg rbx, rax", "\x48\x93", ax | bx},
		{"lfs rbx, [rax]", "\x48\x0f\xb4\x18", bx},
		{"rdfsbase rbx", "\xf3\x48\x0f\xae\xc3", bx}, {"fxsave [rbx]", "\x0f\xae\x03", 0},
		{"rdsspq rbx", "\xf3\x48\x0f\x1e\xcb", bx}, {"endbr64", "\xf3\x0f\x1e\xfa", 0},
		{"pcmpistri xmm0, xmm1, 0", "\x66\x0f\x3a\x63\xc1\x00", cx},
		{"vpcmpistri xmm0, xmm1, 0", "\xc4\xe3\x79\x63\xc1\x00", cx},
		{"kmovw ebx, k1", "\xc5\xf8\x93\xd9", bx}, {"mov dl, bh", "\x8a\xd7", dx},
		{"mov bh, [rax]", "\x8a\x38", bx},
	} {
		in := Decode([]byte(c.code))
		if got := in.Writes(); got != c.want || int(in.Size) != len(c.code) {
			t.Errorf("%s: %#x, %d bytes; want %#x, %d", c.name, got, in.Size, c.want, len(c.code))
		}
	}
}

// A VEX instruction with another source register does not zero.
func TestZeroesVEX(t *testing.T) {
	for code, want := range map[string]int{"\xc5\xf8\x57\xc0": 4, "\xc5\xf0\x57\xc0": 0,
		"\xc5\xf9\xef\xc0": 4, "\xc5\xf1\xef\xc0": 0} {
		expect.Equal(t, Zeroes([]byte(code)), want, "% x", code)
	}
}

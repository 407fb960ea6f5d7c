package managed

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"golang.org/x/arch/x86/x86asm"
)

// made returns an image with one function with this code and unwind data.
func made(code, info []byte) *pe.File {
	const machineAMD64, begin, unwind = 0x8664, 0x1000, 0x2000
	entry := binary.LittleEndian.AppendUint32(nil, begin)
	entry = binary.LittleEndian.AppendUint32(entry, begin+uint32(len(code)))
	entry = binary.LittleEndian.AppendUint32(entry, unwind)
	return pe.FromBlocks(machineAMD64, entry, []pe.Block{{RVA: begin, Data: code}, {RVA: unwind, Data: info}})
}

// info returns an UNWIND_INFO of version 1 with these codes of one slot, offset and operation each.
func info(codes ...[2]byte) []byte {
	b := []byte{1, 20, byte(len(codes)), 0}
	for _, c := range codes {
		b = append(b, c[0], c[1])
	}
	return append(b, 0, 0)
}

var (
	pushRBP = byte(5 << 4)   // PUSH_NONVOL rbp
	alloc   = byte(4<<4 | 2) // ALLOC_SMALL 40
	machine = byte(10)       // PUSH_MACHFRAME
	// push rax; push rbp; sub rsp, 40; mov rbp, rsp; call; mov [rbp+48], rax; call; int3
	redirect = []byte{0x50, 0x55, 0x48, 0x83, 0xec, 0x28, 0x48, 0x8b, 0xec, 0xe8, 1, 0, 0, 0, 0x48, 0x89,
		0x45, 0x30, 0xe8, 2, 0, 0, 0, 0xcc}
	// push rax; push rbp; sub rsp, 40; call; add rsp, 40; pop rbp; ret
	hijack = []byte{0x50, 0x55, 0x48, 0x83, 0xec, 0x28, 0xe8, 1, 0, 0, 0, 0x48, 0x83, 0xc4, 0x28, 0x5d, 0xc3}
	// the same after mov rdx, rsp
	newer = append([]byte{0x48, 0x8b, 0xd4}, hijack...)
	r8    = append([]byte{0x41}, hijack...)
)

func TestEntered(t *testing.T) {
	from := func(b []byte, rest ...byte) []byte { return append(rest, b...) }
	two := info([2]byte{6, alloc}, [2]byte{2, pushRBP})
	for _, c := range []struct {
		name       string
		code, info []byte
		end        uint32 // 0: none
	}{
		{"redirect: up to where it stores the return address", redirect, two, 15},
		{"hijack: up to the call that stores it", hijack, two, 7},
		{"hijack after mov rdx, rsp", newer, info([2]byte{9, alloc}, [2]byte{5, pushRBP}), 10},
		{"hijack with push r8", r8, info([2]byte{7, alloc}, [2]byte{3, pushRBP}), 8},
		{"the push is known", hijack, info([2]byte{6, alloc}, [2]byte{2, pushRBP}, [2]byte{1, 0}), 0},
		{"the push is known as an allocation", hijack,
			info([2]byte{6, alloc}, [2]byte{2, pushRBP}, [2]byte{1, 2}), 0},
		{"a push of what functions preserve", from(hijack[1:], 0x53), two, 0},
		{"no push", hijack[1:], two, 0},
		{"no prolog", hijack, info(), 0},
		{"a machine frame", hijack, info([2]byte{6, alloc}, [2]byte{0, machine}), 0},
		{"unknown codes", hijack, info([2]byte{6, 7}), 0},
		{"version 3", hijack, []byte{3, 20, 0, 0}, 0},
		{"truncated info", hijack, two[:3], 0},
		{"no info", hijack, nil, 0},
		{"one byte of code", hijack[:1], two, 0},
		{"chained", hijack, append([]byte{1 | 4<<3, 20, 1, 0, 6, alloc, 0, 0}, make([]byte, 12)...), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Entered(made(c.code, c.info))
			switch {
			case c.end == 0 && len(got) != 0:
				t.Errorf("found %v", got)
			case c.end != 0 && (len(got) != 1 ||
				got[0] != memory.Range{Start: 0x1000, End: 0x1000 + uint64(c.end)}):
				t.Errorf("found %v, want [0x1000, 0x1000+%d)", got, c.end)
			}
		})
	}
}

const root = "../.."

func open(t *testing.T, path string) *pe.File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("SKIPPED-CHECK: %s is missing; run make runtime", strings.TrimPrefix(path, root+"/"))
	}
	f := must.Get(pe.New(b, path))(t)
	return f
}

// The stubs of real CLRs: their number, and that each range ends at the right instruction, according to
// another disassembler.
func TestRealCLRs(t *testing.T) {
	for _, c := range []struct {
		name, path    string
		stored, calls int
	}{
		{"2.0.0", ".cache/dotnet-2.0.0-win/package/shared/Microsoft.NETCore.App/2.0.0/coreclr.dll", 4, 3},
		{"2.2.2", ".cache/dotnet-2.2.2-win/package/shared/Microsoft.NETCore.App/2.2.2/coreclr.dll", 3, 3},
		{"10.0.9", ".cache/dotnet-10.0.9-win/package/dist/azmcp.exe", 3, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := open(t, filepath.Join(root, c.path))
			stored, calls := 0, 0
			for _, r := range Entered(f) {
				switch last := lastInst(t, f, r); last.Op {
				case x86asm.MOV:
					stored++
				case x86asm.CALL:
					calls++
				default:
					t.Errorf("%#x: ends with %v", r, last)
				}
			}
			expect.True(t, stored == c.stored && calls == c.calls,
				"%d store the return address, %d call what does; want %d and %d", stored, calls, c.stored,
				c.calls)
		})
	}
}

// lastInst returns the instruction whose first byte is the last of a range.
func lastInst(t *testing.T, f *pe.File, r memory.Range) x86asm.Inst {
	t.Helper()
	for at := uint32(r.Start); uint64(at) < r.End; {
		code := f.Tail(at, 16)
		if bytes.HasPrefix(code, []byte{0xf3, 0x48, 0x0f, 0x1e}) { // rdssp, unknown to the library
			at += 5
			continue
		}
		i, err := x86asm.Decode(code, 64)
		must.Equal(t, err, nil, "%#x", at)
		if uint64(at)+1 == r.End {
			return i
		}
		at += uint32(i.Len)
	}
	t.Fatalf("%#x ends amid an instruction", r)
	return x86asm.Inst{}
}

// No other image has any, such as Wine's, which other compilers built.
func TestOtherImages(t *testing.T) {
	const dir = "/usr/lib/x86_64-linux-gnu/wine/x86_64-windows"
	images, functions := 0, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := pe.New(b, path)
		if err != nil {
			return nil // the folder also contains archives
		}
		images++
		functions += f.AMD64().Len()
		got := Entered(f)
		expect.True(t, len(got) == 0, "%s: %v", path, got)
		return nil
	})
	if err != nil {
		t.Skipf("SKIPPED-CHECK: no Wine: run scripts/deps.sh windows: %v", err)
	}
	expect.Figures(t, functions >= 1000, "%d images, %d functions", images, functions)
	ntdll := open(t, filepath.Join(dir, "ntdll.dll"))
	got := Dispatchers(ntdll)
	expect.True(t, len(got) == 3, "dispatchers of ntdll: %v", got)
	got = Dispatchers(made(hijack, nil))
	expect.True(t, len(got) == 0, "dispatchers of nothing: %v", got)
}

package fuzz

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/pevec"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Seeds from real files: what testdata/seeds/build.sh compiled, the functions
// recorded in testkit/testdata/pe, and this machine's own libraries where there are
// such. What a fuzzer finds is kept in testdata/fuzz, which go test replays.

// seedFiles returns the compiled seeds that match a pattern ("*.so").
func seedFiles(f testing.TB, pattern string) map[string][]byte {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "seeds", pattern))
	must.True(f, err == nil && len(names) > 0, "no seeds %s: %v", pattern, err)
	out := map[string][]byte{}
	for _, name := range names {
		b := must.Get(os.ReadFile(name))(f)
		out[filepath.Base(name)] = b
	}
	return out
}

// seedCFI returns the call frame sections of every compiled ELF seed.
func seedCFI(f testing.TB) map[string]cfi.Sections {
	out := map[string]cfi.Sections{}
	for _, pattern := range []string{"*.so", "*.elf"} {
		for name, b := range seedFiles(f, pattern) {
			file := must.Get(elf.New(b, name))(f)
			out[name] = module.CFISections(file, file.CFISections())
		}
	}
	return out
}

// hostLibrary is a library of this machine whose unwind data has more kinds of
// programs in it than a compiled seed has.
const hostLibrary = "/lib/x86_64-linux-gnu/libc.so.6"

// hostFrames returns the first up to n bytes of the machine's own .eh_frame, cut
// behind a whole record, or false.
func hostFrames(n int) (data []byte, addr uint64, ok bool) {
	file, err := elf.Open(hostLibrary)
	if err != nil {
		return nil, 0, false
	}
	s := file.CFISections()
	return wholeRecords(s.EHFrame, n), s.EHFrameAddr, len(s.EHFrame) > 0
}

// wholeRecords cuts frames before the record that goes past n bytes.
func wholeRecords(frames []byte, n int) []byte {
	end := 0
	for end+4 <= len(frames) {
		next := end + 4 + int(le32(frames[end:]))
		if next > n || next > len(frames) {
			break
		}
		end = next
	}
	return frames[:end:end]
}

// vectors names a file of vectors; every n-th is a seed.
type vectors struct {
	file  string
	every int
}

// sorted returns the values of m in the order of their names, so that a seed has
// the same number in every run.
func sorted[V any](m map[string]V) (out []V) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// recorded is one function of the vectors, at one of its points.
type recorded struct {
	info []byte // UNWIND_INFO or .xdata, nil for a packed word
	code []byte // from the function's begin on
	word uint32 // the entry's last word
	into uint32 // from the function's begin, bytes
}

// eachRecorded calls add for every n-th vector of a file, in the middle of what
// was recorded.
func eachRecorded(f testing.TB, file string, n int, add func(recorded)) {
	f.Helper()
	count := 0
	if _, err := pevec.Each(file, func(v *pevec.Vector) error {
		if count++; count%n != 0 || len(v.Functions) == 0 {
			return nil
		}
		fn, pc := v.Functions[0], v.PC
		if len(v.Points) > 0 && v.Points[len(v.Points)/2].PC != nil {
			p := v.Points[len(v.Points)/2]
			pc = *p.PC
			fn = v.Functions[min(p.Fn, len(v.Functions)-1)]
		}
		add(recorded{recordedAt(v, fn.Data), recordedAt(v, fn.Begin), uint32(fn.Data), uint32(pc - fn.Begin)})
		return nil
	}); err != nil && !errors.Is(err, pevec.ErrAbsent) {
		f.Fatal(err)
	}
	must.True(f, count != 0, "no vectors in %s", file)
}

// recordedAt returns the bytes recorded at an RVA and behind it.
func recordedAt(v *pevec.Vector, rva pevec.Hex) []byte {
	for _, m := range v.Mem {
		if rva >= m.Addr && rva < m.Addr+pevec.Hex(len(m.Data)) {
			return m.Data[rva-m.Addr:]
		}
	}
	return nil
}

// TestSeeds: seeds that a reader refuses, or that hold nothing, would make a
// fuzzer start from nowhere.
func TestSeeds(t *testing.T) {
	for name, s := range seedCFI(t) {
		table, err := cfi.Load(s)
		expect.True(t, err == nil && table.Len() >= 8, "%s: %d functions, %v", name, table.Len(), err)
	}
	for name, b := range seedFiles(t, "*.debug_frame") {
		if table, _ := cfi.Load(cfi.Sections{Arch: context.ArchAMD64, DebugFrame: b}); table.Len() < 8 {
			t.Errorf("%s: %d functions", name, table.Len())
		}
	}
	for name, im := range seedImages(t) {
		expect.True(t, len(im.file) > 0 && len(im.file) <= 1<<16 && im.rva != 0,
			"%s: %d bytes, rva %#x", name, len(im.file), im.rva)
	}
}

// eachProgram passes on the programs of real FDEs: of the compiled seeds and, where
// there is one, of the machine's own library, which has signal frames and
// linkage tables.
func eachProgram(f testing.TB, add func([]byte)) {
	for _, s := range sorted(seedCFI(f)) {
		programs(s.EHFrame, 4+4+4+4+1, add) // pointers of 4 bytes, no augmentation data
		programs(s.DebugFrame, 4+4+8+8, add)
	}
	n := 0
	if file, err := elf.Open(hostLibrary); err == nil {
		programs(file.CFISections().EHFrame, 4+4+4+4+1, func(p []byte) {
			if firstExpression(p) != nil || n < 16 {
				n++
				add(p)
			}
		})
	}
}

// programs reports what stands behind the first skip bytes of every FDE.
func programs(frames []byte, skip int, add func([]byte)) {
	for len(frames) >= 8 {
		n := 4 + uint64(le32(frames))
		if n > uint64(len(frames)) {
			return
		}
		if id := le32(frames[4:]); id != 0 && id != 1<<32-1 && n > uint64(skip) && n < uint64(skip)+200 {
			add(frames[skip:n:n])
		}
		frames = frames[n:]
	}
}

// firstExpression returns the expression of the first DW_CFA_def_cfa_expression
// of a program, as far as its bytes can be distinguished from operands; nil if none.
func firstExpression(program []byte) []byte {
	for i := 0; i+2 < len(program); i++ {
		if n := int(program[i+1]); program[i] == 0x0f && n > 1 && n <= len(program)-i-2 {
			return program[i+2 : i+2+n]
		}
	}
	return nil
}

// perByte bounds the bytes allocated for each byte of the input, freed ones included. Allocation is the
// measure of cost: it does not depend on the machine's speed.
const perByte = 64

// bounded runs fn and fails if it allocates more than start bytes and perByte for each of n bytes of input.
func bounded(t *testing.T, start, n int, fn func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	if used, most := after.TotalAlloc-before.TotalAlloc, uint64(start+perByte*n); used > most {
		t.Errorf("%d bytes allocated for %d, at most %d are right", used, n, most)
	}
}

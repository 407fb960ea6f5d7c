package symbol

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/internal/wholefile"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// Symbol types and sections of the gABI.
const (
	sttNoType = 0
	sttFunc   = 2
	sttIFunc  = 10
	shnUndef  = 0
	shnAbs    = 0xfff1
)

// DefaultDebugDirs is where distributions keep separate debug files.
var DefaultDebugDirs = []string{"/usr/lib/debug"}

// ELF returns the table of an image: its own .symtab, else that of its separate debug file below debugDirs,
// else .gnu_debugdata, and always the dynamic symbols. path may be "" for an image from memory.
func ELF(f *elf.File, path string, debugDirs []string) *Table {
	return table(f, path, debugDirs, Functions(f), nil)
}

// table is ELF with a separate debug file that was already found, or nil.
func table(f *elf.File, path string, debugDirs []string, cover Cover, debug *elf.File) *Table {
	symbols := code(f, f, nil, false)
	if len(symbols) == 0 && debug != nil {
		symbols = code(f, debug, nil, false)
	}
	if len(symbols) == 0 {
		symbols = separate(f, path, debugDirs)
	}
	if len(symbols) == 0 {
		symbols = miniDebugInfo(f)
	}
	if len(symbols) == 0 {
		symbols = runtimeNames(f, cover)
	}
	return NewTable(code(f, f, symbols, true), cover)
}

// Functions returns a function that finds the unwind record's range for an address. The image's unwind table
// is read on first use.
func Functions(f *elf.File) Cover { return ranges(records(f)) }

// records returns a function that reads an image's unwind table on first use, and keeps f until then.
func records(f *elf.File) func() *cfi.Table {
	return sync.OnceValue(func() *cfi.Table {
		t, _ := cfi.Load(module.CFISections(f, f.CFISections())) // damaged tables are usable
		return t
	})
}

func ranges(records func() *cfi.Table) Cover {
	return func(addr uint64) (start, end uint64, ok bool) {
		fde, reason := records().Find(addr)
		return fde.Lo, fde.Hi, reason == cfi.None
	}
}

// code appends the symbols in from that name code of f.
func code(f, from *elf.File, out []Symbol, dyn bool) []Symbol {
	ranges := executable(f)
	for s := range from.Symbols(dyn) {
		if s.Section == shnUndef || s.Section == shnAbs || s.Name == "" || isMark(s.Name) ||
			!isCode(ranges, &s) {
			continue
		}
		out = append(out, Symbol{Addr: s.Value, Size: s.Size, Name: s.Name, Rank: rank(s.Bind)})
	}
	return out
}

// isMark reports whether a symbol only marks where code or data begin: $x, $d, $x.1 ("ELF for the Arm 64-bit
// Architecture", "Mapping symbols"). Names in Swift begin with $, too.
func isMark(name string) bool {
	kind, _, _ := strings.Cut(name, ".")
	return kind == "$x" || kind == "$d"
}

// executable returns the address ranges of an image's code, sorted and without overlaps: a damaged image may
// have as many segments as symbols.
func executable(f *elf.File) (out []memory.Range) {
	for _, seg := range f.Segments() {
		if seg.Executable() && seg.Memsz > 0 {
			out = append(out, memory.Range{Start: seg.Vaddr, End: seg.Vaddr + seg.Memsz})
		}
	}
	slices.SortFunc(out, func(a, b memory.Range) int { return cmp.Compare(a.Start, b.Start) })
	n := 0
	for _, r := range out {
		if n > 0 && r.Start <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
			continue
		}
		out[n] = r
		n++
	}
	return out[:n]
}

// isCode selects functions, and symbols without a type inside code.
func isCode(ranges []memory.Range, s *elf.Symbol) bool {
	if s.Type != sttFunc && s.Type != sttIFunc && s.Type != sttNoType {
		return false
	}
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].End > s.Value })
	return i < len(ranges) && ranges[i].Start <= s.Value
}

func rank(bind uint8) int8 {
	switch bind {
	case 1:
		return RankGlobal
	case 2:
		return RankWeak
	}
	return RankLocal
}

// separate reads the symbols of f's debug file, found by build id or else by .gnu_debuglink.
func separate(f *elf.File, path string, dirs []string) []Symbol {
	if d := byBuildID(f.BuildID(), dirs); d != nil {
		return code(f, d, nil, false)
	}
	name, sum, ok := debugLink(f)
	if !ok || path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	places := []string{filepath.Join(dir, name), filepath.Join(dir, ".debug", name)}
	for _, d := range dirs {
		places = append(places, filepath.Join(d, dir, name))
	}
	for _, p := range places {
		if p == path || fileSum(p) != sum {
			continue
		}
		if d, err := elf.Open(p); err == nil {
			return code(f, d, nil, false)
		}
	}
	return nil
}

// byBuildID opens DIR/.build-id/xx/rest.debug if it has that build id.
func byBuildID(id string, dirs []string) *elf.File {
	if !isBuildID(id) {
		return nil
	}
	for _, d := range dirs {
		f, err := elf.Open(filepath.Join(d, ".build-id", id[:2], id[2:]+".debug"))
		if err == nil && f.BuildID() == id {
			return f
		}
	}
	return nil
}

// debugLink reads .gnu_debuglink: a name, zeros up to a multiple of four, and
// the CRC-32 of the file of that name.
func debugLink(f *elf.File) (name string, sum uint32, ok bool) {
	b, _, err := f.Section(".gnu_debuglink")
	n := bytes.IndexByte(b, 0)
	if err != nil || n <= 0 {
		return "", 0, false
	}
	name, at := string(b[:n]), (n+4)&^3
	if at+4 > len(b) || name != filepath.Base(name) {
		return "", 0, false
	}
	return name, binary.LittleEndian.Uint32(b[at:]), true
}

// fileSum returns a file's CRC-32, 0 if it cannot be read.
func fileSum(path string) uint32 {
	f, _, err := wholefile.Open(path, elf.MaxFile)
	if err != nil {
		return 0
	}
	defer f.Close()
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, f); err != nil {
		return 0
	}
	return h.Sum32()
}

// miniDebugInfo reads the compressed ELF file in .gnu_debugdata.
func miniDebugInfo(f *elf.File) []Symbol {
	packed, _, err := f.Section(".gnu_debugdata")
	if err != nil {
		return nil
	}
	data, err := unxz(packed, maxDebugData)
	if err != nil {
		return nil
	}
	mini, err := elf.New(data, f.Name()+" .gnu_debugdata")
	if err != nil {
		return nil
	}
	return code(f, mini, nil, false)
}

package naming

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/clr/metadata"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/clrasm"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// flatMemory is readable from an address on.
type flatMemory struct {
	base uint64
	b    []byte
}

func (m flatMemory) ReadAt(p []byte, addr uint64) bool {
	if addr < m.base || addr-m.base > uint64(len(m.b)) || uint64(len(p)) > uint64(len(m.b))-(addr-m.base) {
		return false
	}
	copy(p, m.b[addr-m.base:])
	return true
}

// lined returns an image in memory with these entries in its debug directory at 0x100.
func lined(entries ...[]byte) (*Images, *image) {
	b := make([]byte, 0x100)
	data := 0x100 + debugEntry*len(entries)
	var behind []byte
	for _, e := range entries {
		row := slices.Clone(e[:debugEntry])
		binary.LittleEndian.PutUint32(row[16:], uint32(len(e)-debugEntry))
		binary.LittleEndian.PutUint32(row[20:], uint32(data+len(behind)))
		b, behind = append(b, row...), append(behind, e[debugEntry:]...)
	}
	b = append(b, behind...)
	im := &image{path: "/app/A.dll",
		head: &header{base: 0x10000, sections: []pe.Section{},
			debug: directory{0x100, uint32(debugEntry * len(entries))}}}
	return NewImages(flatMemory{0x10000, b}), im
}

// entry returns a row of a debug directory, with its data.
func entry(typ uint32, stamp [4]byte, data []byte) []byte {
	row := make([]byte, debugEntry)
	copy(row[4:], stamp[:])
	binary.LittleEndian.PutUint32(row[12:], typ)
	return append(row, data...)
}

// theirs returns the CodeView entry of clrasm.Lines.
func theirs(path string) []byte {
	data := append([]byte("RSDS"), 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	data = append(data, 1, 0, 0, 0)
	return entry(debugCodeView, [4]byte{0, 0, 0, 9}, append(append(data, path...), 0))
}

// packed returns an embedded PDB whose header claims a size.
func packed(pdb []byte, size int) []byte {
	var out bytes.Buffer
	out.WriteString("MPDB")
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(size)))
	w, _ := flate.NewWriter(&out, 9)
	w.Write(pdb)
	w.Close()
	return entry(debugEmbedded, [4]byte{}, out.Bytes())
}

func TestPlaces(t *testing.T) {
	pdb := clrasm.Lines()
	other := clrasm.NewLines([20]byte{7})
	other.Points(other.Document("/wrong.cs"), clrasm.Point{IL: 0, Line: 1, Document: 1})
	found := metadata.Place{File: "/src/app/A.cs", Line: 70, Column: 9}
	for _, c := range []struct {
		name    string
		entries [][]byte
		files   map[string][]byte
		want    metadata.Place
	}{
		{"beside it", [][]byte{theirs(`C:\build\A.pdb`)}, map[string][]byte{"/app/A.pdb": pdb}, found},
		{"by another name, beside it", [][]byte{theirs("/build/Renamed.pdb")},
			map[string][]byte{"/app/A.pdb": pdb}, found},
		{"where it was built", [][]byte{theirs("/build/A.pdb")},
			map[string][]byte{"/build/A.pdb": pdb}, found},
		{"another build beside it", [][]byte{theirs("/build/A.pdb")},
			map[string][]byte{"/app/A.pdb": other.Bytes(), "/build/A.pdb": pdb}, found},
		{"another build only", [][]byte{theirs("/build/A.pdb")},
			map[string][]byte{"/app/A.pdb": other.Bytes()}, metadata.Place{}},
		{"a PDB of Windows", [][]byte{theirs("A.pdb")},
			map[string][]byte{"/app/A.pdb": []byte("Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00 and on")},
			metadata.Place{}},
		{"embedded", [][]byte{theirs("A.pdb"), packed(pdb, len(pdb))}, nil, found},
		{"embedded, not all of it", [][]byte{packed(pdb[:len(pdb)/2], len(pdb))}, nil, metadata.Place{}},
		{"embedded, more than it says", [][]byte{packed(append(slices.Clone(pdb), 0), len(pdb))}, nil, found},
		{"embedded, too large", [][]byte{packed(pdb, maxPDB+1)}, nil, metadata.Place{}},
		{"no debug directory", nil, map[string][]byte{"/app/A.pdb": pdb}, metadata.Place{}},
		{"cut", [][]byte{theirs("")[:debugEntry+20]}, map[string][]byte{"/app/A.pdb": pdb}, metadata.Place{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, im := lined(c.entries...)
			n.File = func(path string, most int64) ([]byte, error) {
				if b := c.files[path]; b != nil {
					return b, nil
				}
				return nil, errors.New("none")
			}
			got, ok := n.place(im, 1, 3)
			expect.True(t, got == c.want && ok == (c.want.Line != 0), "%v %v, want %v", got, ok, c.want)
			n, im = lined(c.entries...)
			n.place(im, 1, 3) // no files are read
		})
	}
}

// loaded maps a file's sections as a loader does.
func loaded(t *testing.T, path string) ([]byte, []byte) {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	f := must.Get(pe.New(b, path))(t)
	img := make([]byte, 0x1000)
	copy(img, b[:min(len(b), 0x1000)])
	for _, s := range f.Sections() {
		if end := int(s.RVA + max(s.VirtualSize, s.Size)); end > len(img) {
			img = append(img, make([]byte, end-len(img))...)
		}
		copy(img[s.RVA:], b[s.Offset:s.Offset+s.Size])
	}
	return img, b
}

// ilSize returns the size of a method's IL from its header (ECMA-335 II.25.4); -1 if it has none.
func ilSize(img []byte, rva uint32) int {
	if rva == 0 || int(rva)+12 > len(img) {
		return -1
	}
	if h := img[rva]; h&3 == 2 {
		return int(h >> 2)
	}
	return int(binary.LittleEndian.Uint32(img[rva+4:]))
}

// Nearly every precompiled method of the class library has boundaries, and their offsets are within its IL.
func TestPrecompiledBounds(t *testing.T) {
	n, im, img := precompiledLibrary(t, "System.Private.CoreLib.dll")
	other := NewImages(flatMemory{0x10000, img}).image(0x10000, "")
	expect.True(t, unsafe.StringData(other.text.Value()) == unsafe.StringData(im.text.Value()),
		"two processes do not share the metadata of a module")
	methods, lined, sound, bounds, beyond := 0, 0, 0, 0, map[string]bool{}
	for k, s := range im.r2r.starts {
		size := ilSize(img, im.md.RVA(int(s.rid)))
		if s.rid == 0 || size < 0 { // another module's method, or a call of native code
			continue
		}
		methods++
		all := n.bounds(im.r2r, s.index)
		if len(all) > 0 {
			lined++
			code := im.r2r.begins[min(int(s.index)+1, len(im.r2r.begins)-1)] - im.r2r.begins[s.index]
			if all[0] == (contract.Bound{IL: contract.Prolog, Call: all[0].Call}) &&
				slices.IsSortedFunc(all,
					func(a, b contract.Bound) int { return cmp.Compare(a.Native, b.Native) }) {
				sound++
			}
			if im.r2r.starts[min(k+1, len(im.r2r.starts)-1)].index == s.index+1 &&
				all[len(all)-1].Native > code {
				t.Errorf("%s: %d of %d bytes of code",
					im.named(int(s.rid)).Name, all[len(all)-1].Native, code)
			}
		}
		for _, b := range all {
			bounds++
			if b.IL < contract.Epilog && int(b.IL) > size {
				beyond[im.named(int(s.rid)).Name] = true
			}
		}
	}
	t.Logf("%d methods, %d with boundaries, %d sound, %d boundaries", methods, lined, sound, bounds)
	// The JIT compiler replaces the IL of these methods by its own, so their offsets may be larger.
	maps.DeleteFunc(beyond, func(name string, _ bool) bool {
		return strings.HasPrefix(name, "System.Runtime.CompilerServices.Unsafe::")
	})
	expect.True(t, len(beyond) == 0, "offsets beyond the IL: %v", slices.Sorted(maps.Keys(beyond)))
	expect.True(t, methods >= 20000 && sound*100 >= methods*95,
		"%d of %d methods have boundaries, %d of them begin with the prolog and rise", lined, methods, sound)
}

// A line is that of the method's IL. An image without a Portable PDB is not read.
func TestPrecompiledPlace(t *testing.T) {
	n, im, _ := precompiledLibrary(t, "System.Linq.dll")
	im.seen = true // there is no file next to it
	_, ok := n.PrecompiledPlace(0x10000, 0x10000)
	expect.True(t, !ok && !im.r2r.debug.seen, "lines without a Portable PDB")
	pdb := must.Get(metadata.ParseLines(clrasm.Lines()))(t)
	im.pdb = pdb
	lines := 0
	for _, s := range im.r2r.starts {
		begin := im.r2r.base + uint64(im.r2r.begins[s.index])
		bounds := n.bounds(im.r2r, s.index)
		for i, b := range bounds {
			want, ok := pdb.Find(int(s.rid), b.IL)
			empty := i+1 < len(bounds) && bounds[i+1].Native == b.Native
			if b.IL >= contract.Epilog || !ok || s.rid == 0 || empty {
				continue
			}
			lines++
			got, ok := n.PrecompiledPlace(0x10000, begin+uint64(b.Native))
			expect.True(t, ok && got.File == want.File,
				"row %d, IL %#x: %v %v, want %v", s.rid, b.IL, got, ok, want)
		}
	}
	expect.True(t, lines != 0, "no method of the PDB is precompiled")
}

// precompiledLibrary returns a library of .NET 9, loaded at 0x10000.
func precompiledLibrary(t *testing.T, name string) (n *Images, im *image, img []byte) {
	t.Helper()
	at, _ := filepath.Glob("../../.cache/dotnet-9.*/package/dist/" + name)
	if len(at) == 0 {
		t.Skip("SKIPPED-CHECK: no " + name + " in .cache (make deps)")
	}
	img, _ = loaded(t, at[0])
	n = NewImages(flatMemory{0x10000, img})
	n.native = true
	im = n.image(0x10000, at[0])
	must.True(t, im.r2r != nil, "not precompiled")
	return n, im, img
}

// A truncated or modified section is read within bounds.
func TestHostilePrecompiledBounds(t *testing.T) {
	n, im, _ := precompiledLibrary(t, "System.Linq.dll")
	n.bounds(im.r2r, 0)
	d := &im.r2r.debug
	must.True(t, len(d.b) != 0, "no section")
	whole := d.b
	use := func() {
		for i := int32(-2); i < 40; i++ {
			im.r2r.decode(i)
		}
		im.r2r.decode(1<<31 - 1)
	}
	for size := 0; size < len(whole); size += 1 + size/50 {
		d.b = whole[:size:size]
		use()
	}
	for at := 0; at < len(whole); at += 1 + at/50 {
		for _, v := range []byte{0, 0x0f, 0x7f, 0x80, 0xff} {
			d.b = slices.Clone(whole)
			d.b[at] = v
			use()
		}
	}
}

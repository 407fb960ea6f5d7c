package symbol

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/seedwalk/seedwalk/pe"
	peamd64 "github.com/seedwalk/seedwalk/pe/amd64"
	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/symbol/pdb"
)

// maxLeaf bounds the size of a function without an unwind record (a leaf function), bytes. The stub of a
// system call has 32 bytes on Windows.
const maxLeaf = 32

// PE makes the table of a Windows image: the names of its PDB, which may be nil, those that GNU
// compilers leave in the file, and exports. Addresses are RVAs.
func PE(f *pe.File, db *pdb.File) *Table {
	symbols := pdbNames(db)
	exports, _ := f.Exports() // a partial result is useful
	for i := range exports {
		if e := &exports[i]; e.Name != "" && e.RVA != 0 {
			symbols = append(symbols,
				Symbol{Addr: uint64(e.RVA), Name: e.Name, Rank: RankWeak - exportRank(e.Name)})
		}
	}
	for _, s := range f.Functions() {
		symbols = append(symbols, Symbol{Addr: uint64(s.RVA), Name: s.Name, Rank: RankLocal})
	}
	return NewTable(symbols, peSize(f))
}

// exportRank is 1 for a name that begins with Zw. Such a system call has a second name, which programs use.
func exportRank(name string) int8 {
	if strings.HasPrefix(name, "Zw") {
		return 1
	}
	return 0
}

// pdbNames returns the names in a PDB, nil without one.
func pdbNames(db *pdb.File) (out []Symbol) {
	if db == nil {
		return nil
	}
	symbols, _ := db.Symbols() // a partial result is useful
	for _, s := range symbols {
		n := Symbol{Addr: uint64(s.RVA), Size: uint64(s.Size), Name: s.Name, Rank: RankGlobal}
		if s.Size == 0 {
			n.Name, n.Rank = undecorate(s.Name), RankWeak
		}
		out = append(out, n)
	}
	return out
}

// peCover finds the function that contains an RVA: on x64 with its chained entries, on ARM64 without other
// fragments.
func peCover(f *pe.File) Cover {
	if f.ARM64().Len() != 0 {
		return func(addr uint64) (start, end uint64, ok bool) {
			var codes pearm64.Buffer
			var info pearm64.Info
			begin, found, fault := f.ARM64().Find(uint32(addr), &codes, &info)
			return uint64(begin), uint64(begin) + uint64(info.Length),
				found && fault.OK() && addr == uint64(uint32(addr))
		}
	}
	return func(addr uint64) (start, end uint64, ok bool) {
		if addr != uint64(uint32(addr)) {
			return 0, 0, false
		}
		fn, found := f.AMD64().Lookup(uint32(addr))
		if !found || uint32(addr) >= fn.End {
			return 0, 0, false
		}
		if first, why := f.AMD64().Primary(fn); why == peamd64.OK {
			return uint64(first.Begin), uint64(fn.End), true
		}
		return uint64(fn.Begin), uint64(fn.End), true
	}
}

// peSize bounds the name at an address: by the function's end if it is the function's start, and by the next
// function or maxLeaf if no function contains it.
func peSize(f *pe.File) Cover {
	cover := peCover(f)
	return func(addr uint64) (start, end uint64, ok bool) {
		if start, end, ok = cover(addr); ok {
			return start, end, start == addr
		}
		for end = addr + 1; end < addr+maxLeaf; end++ {
			if _, _, ok := cover(end); ok {
				break
			}
		}
		return addr, end, true
	}
}

// loadPE reads the names of a Windows image. It returns false without any.
func (r *Resolver) loadPE(im *image, path, id string) bool {
	f := r.openPE(path, id)
	name := pdbName(f, path)
	if f != nil {
		if d, ok := f.DebugID(); ok {
			id = d.String()
		}
	}
	db := r.findPDB(path, id, name)
	switch {
	case f != nil:
		im.cover, im.table, im.chained = peCover(f), PE(f, db), true
	case db != nil:
		im.table = NewTable(pdbNames(db), nil) // procedures only: nothing bounds publics
	default:
		return false
	}
	if db != nil {
		var mu sync.Mutex
		im.line = func(addr uint64) (string, int) {
			mu.Lock()
			defer mu.Unlock()
			return db.Line(uint32(addr))
		}
	}
	im.size.Store(1 + int64(im.table.Len()))
	return true
}

// openPE reads the image at path or in the user's folders. It returns nil if no image has that ID.
func (r *Resolver) openPE(path, id string) *pe.File {
	places := []string{path}
	if id != "" {
		for _, dir := range r.Folders {
			places = append(places, filepath.Join(dir, lastPart(path)))
		}
	}
	for _, p := range places {
		f, err := pe.Open(p)
		if err != nil {
			continue
		}
		if d, _ := f.DebugID(); id == "" || d.String() == id {
			return f
		}
	}
	return nil
}

// pdbName is the name of the PDB of an image, which may be nil: the linker's, else the image's own.
func pdbName(f *pe.File, path string) string {
	if f != nil {
		if d, ok := f.DebugID(); ok {
			return lastPart(d.PDB)
		}
	}
	name := lastPart(path)
	return strings.TrimSuffix(name, filepath.Ext(name)) + ".pdb"
}

// findPDB opens the PDB of an image's build, or nil: in the user's folders, beside the
// image, or from a server.
func (r *Resolver) findPDB(path, id, name string) (found *pdb.File) {
	if !isPDBID(id) || !isFileName(name) {
		return nil
	}
	var refused []Refusal
	fits := func(file, place string) bool {
		db, err := pdb.Open(file)
		var bad *pdb.Error
		switch {
		case err == nil && db.ID() == id:
			found = db
		case err == nil:
			refused = append(refused, Refusal{place, path, db.ID(), id})
		case errors.As(err, &bad):
			refused = append(refused, Refusal{place, path, "", id})
		}
		return found != nil
	}
	var places []string
	for _, dir := range r.Folders {
		places = append(places, filepath.Join(dir, name), filepath.Join(dir, name, id, name),
			filepath.Join(dir, name, strings.ToLower(id), name))
	}
	places = append(places, strings.TrimSuffix(path, lastPart(path))+name)
	if !slices.ContainsFunc(places, func(p string) bool { return fits(p, p) }) && r.Fetch != nil {
		r.fetching.Lock()
		r.Fetch(name, id, fits)
		r.fetching.Unlock()
	}
	for _, n := range refused {
		if found == nil {
			r.refuse(n)
		}
	}
	return found
}

// lastPart is what follows the last separator of a path of any system.
func lastPart(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// isPDBID reports whether an ID is a GUID in upper case and an age.
func isPDBID(id string) bool {
	return len(id) > 32 && len(id) <= 40 && strings.Trim(id, "0123456789ABCDEF") == ""
}

// isFileName reports whether a name from an image can be that of a file in a folder.
func isFileName(name string) bool {
	return len(name) < 256 && name != "" && name[0] != '.' &&
		strings.IndexFunc(name, unicode.IsControl) < 0 && !strings.Contains(name, ":")
}

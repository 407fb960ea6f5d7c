package e2e

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/context/memory"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/stack/raw"
	"github.com/seedwalk/seedwalk/unwind/module"
)

// table is the module table of a sample, made from the files.
func (o *opinion) table(t *testing.T, s *raw.Sample) *module.Table {
	t.Helper()
	if len(s.Images) == 0 {
		return module.NewTable(0, nil, nil)
	}
	if made := o.tables[&s.Images[0]]; made != nil {
		return made
	}
	var modules []module.Module
	for i := range s.Images {
		im := &s.Images[i]
		modules = append(modules, module.PEFromFile(im.ID, o.open(t, im), im.Path, im.Start, im.End))
	}
	made := module.NewTable(uint32(len(o.tables)+1), modules, between(modules))
	o.tables[&s.Images[0]] = made
	return made
}

// between is all memory outside modules. The product's table includes the managed code, which files of
// samples do not list: a return address in this memory counts as managed.
func between(modules []module.Module) (out []memory.Range) {
	images := slices.Clone(modules)
	slices.SortFunc(images, func(a, b module.Module) int { return cmp.Compare(a.Start, b.Start) })
	low := uint64(1 << 16) // Windows maps nothing below
	for i := range images {
		if images[i].Start > low {
			out = append(out, memory.Range{Start: low, End: images[i].Start})
		}
		low = images[i].End
	}
	return append(out, memory.Range{Start: low, End: 1 << 47})
}

// open opens the file of a mapped image: the one at its path, or Wine's own, which Wine may have preferred.
func (o *opinion) open(t *testing.T, im *raw.Image) *pe.File {
	t.Helper()
	if f := o.files[im.Path]; f != nil {
		return f
	}
	path := ownPath(im.Path)
	for _, p := range []string{path, filepath.Join(system32(t), strings.ToLower(filepath.Base(path)))} {
		if f, err := pe.Open(p); err == nil && uint64(f.SizeOfImage()) == im.End-im.Start {
			o.files[im.Path] = f
			return f
		}
	}
	t.Fatalf("no file of %s, an image of %#x bytes", im.Path, im.End-im.Start)
	return nil
}

package symbol

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seedwalk/seedwalk/elf"
)

// Refusal is a symbol file that has the name of an image's but belongs to another build.
type Refusal struct {
	File, Image string
	Got, Want   string // build IDs
}

// Folders are the user's places with symbol files. Each may be flat, have a .build-id folder, or be a symbol
// store or a cache of debuginfod.
type Folders []string

// layouts returns the paths, relative to a symbol folder, at which the symbols of a build may be. The folder
// may contain .build-id or be .build-id itself. It may be a symbol store (SSQP key conventions), or the cache
// or the server's folder of debuginfod. id is the build ID in hexadecimal.
func layouts(id string) []string {
	short := filepath.Join(id[:2], id[2:]+".debug")
	return []string{
		filepath.Join(".build-id", short), short,
		filepath.Join("_.debug", "elf-buildid-sym-"+id, "_.debug"),
		filepath.Join(id, "debuginfo"), filepath.Join("buildid", id, "debuginfo"),
	}
}

// flat returns the names of symbol files next to an image: libcoreclr.so.dbg is .NET's form.
func flat(path, link string) []string {
	name := filepath.Base(path)
	out := []string{name + ".dbg", name + ".debug", name}
	if link != "" && !slices.Contains(out, link) {
		out = append([]string{link}, out...)
	}
	return out
}

// find opens the symbols of an image, or returns nil. link is the name in its .gnu_debuglink. An image
// without a build ID has none, because a name proves nothing.
func (f Folders) find(path, id, link string, refused func(Refusal)) *elf.File {
	if !isBuildID(id) {
		return nil
	}
	for _, dir := range f {
		for _, p := range layouts(id) {
			if file := f.open(filepath.Join(dir, p), path, id, refused); file != nil {
				return file
			}
		}
		for _, p := range flat(path, link) {
			if file := f.open(filepath.Join(dir, p), path, id, refused); file != nil {
				return file
			}
		}
	}
	return nil
}

// open opens a file with symbols of the build id, nil if it has no symbols.
func (f Folders) open(file, image, id string, refused func(Refusal)) *elf.File {
	e, err := elf.Open(file)
	if err != nil {
		return nil
	}
	if got := e.BuildID(); got != id {
		refused(Refusal{file, image, got, id})
		return nil
	}
	for range e.Symbols(false) {
		return e
	}
	return nil
}

// isBuildID reports whether a build ID is safe in a path: at least two bytes in lower-case hexadecimal.
func isBuildID(id string) bool {
	return len(id) >= 4 && strings.Trim(id, "0123456789abcdef") == ""
}

// maxRefused bounds the stored refusals.
const maxRefused = 100

func (r *Resolver) refuse(n Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.refused) < maxRefused && !slices.Contains(r.refused, n) {
		r.refused = append(r.refused, n)
	}
}

// Refused returns the symbol files of Folders that belong to another build, for images for
// which no other file was found.
func (r *Resolver) Refused() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.refused)
	slices.SortFunc(out, func(a, b Refusal) int { return cmp.Compare(a.File, b.File) })
	return out
}

// fromFolders reads the symbols of an image from the user's folders. f is the image, nil if it is missing.
func (r *Resolver) fromFolders(f *elf.File, path, id string) *elf.File {
	if len(r.Folders) == 0 {
		return nil
	}
	link := ""
	if f != nil {
		id = f.BuildID()
		link, _, _ = debugLink(f)
	}
	var refused []Refusal
	found := r.Folders.find(path, id, link, func(n Refusal) { refused = append(refused, n) })
	if found == nil {
		for _, n := range refused {
			r.refuse(n)
		}
	}
	return found
}

// fetched fetches the symbols of an image without any on this machine.
func (r *Resolver) fetched(f *elf.File, path, id string, dirs []string) *elf.File {
	switch {
	case f == nil && byBuildID(id, dirs) != nil, f != nil &&
		(len(code(f, f, nil, false)) > 0 || len(separate(f, path, dirs)) > 0):
		return nil
	case f != nil:
		id = f.BuildID()
	}
	if !isBuildID(id) {
		return nil
	}
	var found *elf.File
	r.fetching.Lock()
	defer r.fetching.Unlock()
	r.Fetch(path, id, func(file, place string) bool {
		e, err := elf.Open(file)
		switch {
		case err != nil:
			r.refuse(Refusal{place, path, "", id})
		case e.BuildID() != id:
			r.refuse(Refusal{place, path, e.BuildID(), id})
		default:
			found = e
		}
		return found != nil
	})
	return found
}

package session

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/live"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/waits"
)

// ReadMaps learns what was mapped from lines of /proc/PID/maps, or of the same form for
// an image of Windows: where it is loaded as a whole, its time stamp in the place of the
// inode. Such images are also looked for in dir, by name.
func ReadMaps(n *waits.Names, in io.Reader, dir string) error {
	maps, err := live.ParseMaps(in)
	var out []waits.Image
	for i := range maps {
		m := &maps[i]
		im := waits.Image{Start: m.Start, End: m.End, Offset: m.Offset, Path: m.Path}
		switch {
		case m.Exec && ofWindows(m.Path):
			im.BuildID = stampID(m.Inode)
		case !m.Exec || !strings.HasPrefix(m.Path, "/") || strings.HasPrefix(m.Path, "/memfd:"):
			continue
		}
		out = append(out, im)
	}
	addImages(n, out, dir)
	return err
}

// addImages tells of images, and how offsets in them are named.
func addImages(n *waits.Names, images []waits.Image, dir string) {
	n.SetNative(newNativeNames(dir).name)
	n.AddImages(images)
}

// ofWindows reports whether a path is one of Windows: of a drive or a share.
func ofWindows(path string) bool {
	return len(path) > 3 && path[1] == ':' && path[2] == '\\' || strings.HasPrefix(path, `\\`)
}

// stampID is a time stamp in the form of a build id.
func stampID(stamp uint64) string {
	if stamp == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", stamp)
}

// nativeNames names offsets of ELF files, and of PE images as they are loaded.
type nativeNames struct {
	dir      string // where images of Windows are looked for too, "" = nowhere
	mu       sync.Mutex
	symbols  *symbol.Resolver
	segments map[string][]elf.Segment
	exports  *symbol.PEResolver
	files    map[string]string // of images of Windows by path and stamp, "" = there is none
}

func newNativeNames(dir string) *nativeNames {
	return &nativeNames{dir: dir, symbols: symbol.NewResolver(), segments: map[string][]elf.Segment{}, exports: symbol.NewPEResolver(), files: map[string]string{}}
}

// name is the function that covers an offset; never the nearest symbol before.
func (n *nativeNames) name(im *waits.Image, offset uint64) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ofWindows(im.Path) {
		file := n.file(im)
		if file == "" {
			return "", false
		}
		return n.exports.Name(file, "", offset)
	}
	segments, ok := n.segments[im.Path]
	if !ok {
		if f, err := elf.Open(im.Path); err == nil {
			segments = f.Segments()
		}
		n.segments[im.Path] = segments
	}
	for i := range segments {
		if s := &segments[i]; offset >= s.Off && offset-s.Off < s.Filesz {
			return n.symbols.Name(im.Path, "", offset-s.Off+s.Vaddr)
		}
	}
	return "", false
}

// file is where the image can be read, the one that was loaded and not another build.
func (n *nativeNames) file(im *waits.Image) string {
	key := im.Path + "\x00" + im.BuildID
	path, ok := n.files[key]
	if !ok {
		candidates := []string{im.Path}
		if n.dir != "" {
			candidates = append(candidates, filepath.Join(n.dir, im.Path[strings.LastIndexByte(im.Path, '\\')+1:]))
		}
		for _, c := range candidates {
			if f, err := pe.Open(c); err == nil && path == "" && uint64(f.SizeOfImage()) <= im.End-im.Start && stampID(uint64(f.Stamp())) == im.BuildID {
				path = c
			}
		}
		n.files[key] = path
	}
	return path
}

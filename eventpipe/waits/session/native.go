package session

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/eventpipe/waits"
	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/symbol"
)

// ReadMaps adds the images of executable mappings to n. in contains lines of /proc/PID/maps. A
// Windows image has a line of the same form: it has the range of the whole image, and the
// image's time stamp in place of the inode. Windows images are also searched in dir, by name.
// If in is damaged, ReadMaps adds the mappings before the damage and returns an error.
func ReadMaps(n *waits.Names, in io.Reader, dir string) error {
	images, err := parseMaps(in)
	addImages(n, images, newNativeNames(dir, ""))
	return err
}

func parseMaps(in io.Reader) (out []waits.Image, err error) {
	maps, err := live.ParseMaps(in)
	for i := range maps {
		m := &maps[i]
		im := waits.Image{Start: m.Start, End: m.End, Offset: m.Offset, Path: m.Path}
		switch {
		case m.Exec && isWindowsPath(m.Path):
			im.BuildID = stampID(m.Inode)
		case !m.Exec || !strings.HasPrefix(m.Path, "/") || strings.HasPrefix(m.Path, "/memfd:"):
			continue
		default:
			im.Inode = m.Inode
		}
		out = append(out, im)
	}
	return out, err
}

// addImages adds images and the function that names their offsets.
func addImages(n *waits.Names, images []waits.Image, names *nativeNames) {
	n.SetNative(names.name)
	n.AddImages(images)
}

// isWindowsPath reports whether a path is a Windows path: on a drive or a share.
func isWindowsPath(path string) bool {
	return len(path) > 3 && path[1] == ':' && path[2] == '\\' || strings.HasPrefix(path, `\\`)
}

// stampID formats a time stamp as a build ID.
func stampID(stamp uint64) string {
	if stamp == 0 {
		return ""
	}
	return fmt.Sprintf("%08x", stamp)
}

// nativeNames names return addresses: offsets in ELF files and RVAs in PE images.
type nativeNames struct {
	dir     string // additional directory for Windows images, "" = none
	root    string // folder with the files as the process sees them, "" = none
	mu      sync.Mutex
	symbols *symbol.Resolver
	mapped  map[imageFile]mappedFile
	files   map[string]string // Windows images by path and stamp, "" = not found
}

// mappedFile is the file of an image. It has no segments if none of the possible files is the mapped one.
type mappedFile struct {
	path     string
	segments []elf.Segment
}

// imageFile identifies a file. A file in a container may have the same path as a file outside.
type imageFile struct {
	path  string
	inode uint64
}

func newNativeNames(dir, root string) *nativeNames {
	return &nativeNames{dir: dir, root: root, symbols: symbol.NewResolver(),
		mapped: map[imageFile]mappedFile{}, files: map[string]string{}}
}

// name returns a return address in the image's own addresses, and the function that contains the call, ""
// if it is unknown. It never uses the nearest symbol before it. If the image cannot be read, or the file at
// its path is not the mapped file, the address is the offset.
func (n *nativeNames) name(im *waits.Image, offset uint64) (at uint64, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if isWindowsPath(im.Path) {
		if file := n.file(im); file != "" {
			name, _ = n.symbols.Name(file, "", offset-1)
		}
		return offset, name
	}
	f := n.open(im)
	for i := range f.segments {
		if s := &f.segments[i]; offset > s.Off && offset-s.Off <= s.Filesz {
			at = offset - s.Off + s.Vaddr
			name, _ = n.symbols.Name(f.path, "", at-1)
			return at, name
		}
	}
	return offset, ""
}

// open finds the mapped file of an image once: at its path here, or as the process sees it.
func (n *nativeNames) open(im *waits.Image) mappedFile {
	key := imageFile{im.Path, im.Inode}
	found, ok := n.mapped[key]
	if ok {
		return found
	}
	for _, root := range []string{"", n.root} {
		path := root + im.Path
		if !isInode(path, im.Inode) {
			continue
		}
		if f, err := elf.Open(path); err == nil {
			found = mappedFile{path, f.Segments()}
			break
		}
	}
	n.mapped[key] = found
	return found
}

// file returns a path of the loaded image. It rejects files of another build.
func (n *nativeNames) file(im *waits.Image) string {
	key := im.Path + "\x00" + im.BuildID
	path, ok := n.files[key]
	if !ok {
		candidates := []string{im.Path}
		if n.dir != "" {
			candidates = append(candidates,
				filepath.Join(n.dir, im.Path[strings.LastIndexByte(im.Path, '\\')+1:]))
		}
		for _, c := range candidates {
			if f, err := pe.Open(c); err == nil && path == "" && uint64(f.SizeOfImage()) <= im.End-im.Start &&
				stampID(uint64(f.Stamp())) == im.BuildID {
				path = c
			}
		}
		n.files[key] = path
	}
	return path
}

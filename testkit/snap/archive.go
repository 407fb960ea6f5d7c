package snap

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"github.com/seedwalk/seedwalk/testkit/moduleroot"
)

// maxEntry bounds one file of an archive, bytes. A longer file is cut.
const maxEntry = 64 << 20

// ErrAbsent means that this machine has no vectors.
var ErrAbsent = errors.New("snap: no vectors folder (set SEEDWALK_VECTORS)")

// Vectors returns the folder of the vectors: SEEDWALK_VECTORS if set, else
// shared/vectors beside the repository the working directory lies in.
func Vectors() (string, error) {
	if dir := os.Getenv("SEEDWALK_VECTORS"); dir != "" {
		return dir, nil
	}
	dir, err := moduleroot.Find()
	if errors.Is(err, moduleroot.ErrNone) {
		return "", ErrAbsent
	}
	if err != nil {
		return "", fmt.Errorf("snap: %w", err)
	}
	v := filepath.Join(filepath.Dir(dir), "shared", "vectors")
	if _, err := os.Stat(v); err != nil {
		return "", ErrAbsent
	}
	return v, nil
}

// Archive is a set of named files: the layout of elf.tar.gz.
type Archive struct {
	files map[string][]byte
}

// OpenVectors opens the elf folder of Vectors: elf.tar.gz, or its unpacked
// contents beside it. keep chooses files by their slash-separated path; nil
// keeps all.
func OpenVectors(keep func(name string) bool) (*Archive, error) {
	root, err := Vectors()
	if err != nil {
		return nil, err
	}
	tgz := filepath.Join(root, "elf", "elf.tar.gz")
	if _, err := os.Stat(tgz); err == nil {
		return OpenTar(tgz, keep)
	}
	return OpenDir(filepath.Join(root, "elf"), keep)
}

// ForArch keeps what the snapshots of one architecture (x86_64, aarch64) need.
func ForArch(arch string) func(string) bool {
	return func(name string) bool {
		return strings.HasPrefix(name, "snap/"+arch+"_") || strings.HasPrefix(name, "files/"+arch+"/")
	}
}

// OpenTar reads a gzip-compressed tar file.
func OpenTar(file string, keep func(string) bool) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("snap: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("snap: %s: %w", file, err)
	}
	a := &Archive{files: map[string][]byte{}}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return a, nil
		}
		if err != nil {
			return nil, fmt.Errorf("snap: %s: %w", file, err)
		}
		name := path.Clean(h.Name)
		if h.Typeflag != tar.TypeReg || keep != nil && !keep(name) {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(t, maxEntry))
		if err != nil {
			return nil, fmt.Errorf("snap: %s: %s: %w", file, name, err)
		}
		a.files[name] = data
	}
}

// OpenDir reads an unpacked folder.
func OpenDir(dir string, keep func(string) bool) (*Archive, error) {
	a := &Archive{files: map[string][]byte{}}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || keep != nil && !keep(name) {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		a.files[name] = data
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("snap: %w", err)
	}
	return a, nil
}

// File returns one file's bytes, which must not be changed.
func (a *Archive) File(name string) ([]byte, bool) {
	b, ok := a.files[name]
	return b, ok
}

// Names lists the files whose names have a prefix, sorted.
func (a *Archive) Names(prefix string) []string {
	var names []string
	for name := range a.files {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// Beside returns a function that reads files by paths relative to the folder of a file.
func (a *Archive) Beside(name string) func(rel string) ([]byte, error) {
	return func(rel string) ([]byte, error) {
		p := path.Join(path.Dir(name), rel)
		if data, ok := a.files[p]; ok {
			return data, nil
		}
		return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
}

// Programs lists the snapshot files of one architecture, sorted.
func (a *Archive) Programs(arch string) []string {
	var names []string
	for name := range a.files {
		if strings.HasPrefix(name, "snap/"+arch+"_") && strings.HasSuffix(name, ".json") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

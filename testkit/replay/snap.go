package replay

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/testkit/judge"
	"github.com/seedwalk/seedwalk/testkit/snap"
)

// snapshots replays one file of recorded stacks.
func (r *Runner) snapshots(s *judge.Score, name string, b *besides) error {
	a, inside, err := r.snapArchive(name, b)
	if err != nil {
		return err
	}
	p, err := a.Load(inside)
	if err != nil {
		return err
	}
	return judge.Snapshots(s, p)
}

// snapArchive opens the folder or archive a snapshot file lies in: it names
// its modules from there.
func (r *Runner) snapArchive(name string, b *besides) (*snap.Archive, string, error) {
	if b.tar != nil {
		inside := strings.TrimPrefix(name, b.file+":")
		a, err := cached(r, b.file, func() (*snap.Archive, error) { return snap.OpenTar(b.file, nil) })
		return a, inside, err
	}
	root, inside := filepath.Dir(b.dir), path.Join(filepath.Base(b.dir), filepath.Base(name))
	if _, err := os.Stat(filepath.Join(root, "files")); err != nil {
		root, inside = b.dir, filepath.Base(name)
	}
	dir := path.Dir(inside)
	keep := func(n string) bool { return strings.HasPrefix(n, "files/") || path.Dir(n) == dir }
	a, err := cached(r, root+"\x00"+dir, func() (*snap.Archive, error) { return snap.OpenDir(root, keep) })
	return a, inside, err
}

func cached(r *Runner, key string, open func() (*snap.Archive, error)) (*snap.Archive, error) {
	if a := r.archives[key]; a != nil {
		return a, nil
	}
	a, err := open()
	if err == nil {
		r.archives = map[string]*snap.Archive{key: a} // one is enough: files come in order
	}
	return a, err
}

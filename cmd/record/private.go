package record

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// A recording has a directory of its own below the temporary one. It holds the socket
// and what a profiler that refuses to work leaves for the tool; and a file that is
// locked as long as the tool lives, so that the next recording can tell what a killed
// one left behind, and takes it away.
const (
	privatePrefix = "seedwalk-run-"
	lockName      = "lock"
	socketName    = "socket"
	refusedName   = "refused"
)

// private is the directory of one recording.
type private struct {
	dir  string
	lock *os.File
}

// newPrivate takes away what dead recordings left and makes a directory.
func newPrivate(parent string) (*private, error) {
	sweep(parent)
	dir, err := os.MkdirTemp(parent, privatePrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &private{dir, lock}, nil
}

func (p *private) path(name string) string { return filepath.Join(p.dir, name) }

// close removes the directory. The lock goes last: until then nobody else takes the
// directory for a dead one's.
func (p *private) close() {
	removeKnown(p.dir)
	p.lock.Close()
	os.Remove(p.path(lockName))
	os.Remove(p.dir)
}

// sweep removes the directories of recordings whose tool is dead. One without a lock is
// being made, and is left alone.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), privatePrefix) { // no symbolic links
			continue
		}
		dir := filepath.Join(parent, e.Name())
		if !ours(dir) || !dead(filepath.Join(dir, lockName)) {
			continue
		}
		removeKnown(dir)
		os.Remove(filepath.Join(dir, lockName))
		os.Remove(dir) // fails where somebody has put something else
	}
}

// removeKnown removes the files that a recording makes, and no others.
func removeKnown(dir string) {
	for _, name := range []string{socketName, refusedName, probe.LibraryName} {
		os.Remove(filepath.Join(dir, name))
	}
}

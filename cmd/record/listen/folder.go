// Package listen makes the private folder of a recording and accepts the connections of
// profilers.
//
// Sources: unix(7), credentials(7), flock(2).
//
// Glossary. The folder holds the socket, and the probe for the target.
//
// Strategy. On Linux a unix socket in the folder takes connections of our user, of root, and of one
// other user if requested. On Windows a port of this machine takes connections that send a secret. A
// lock in the folder shows that its tool lives. The next recording removes the folders of dead tools.
//
// Known gaps: a folder of another user's tool is left to that user.
package listen

import (
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/seedwalk/seedwalk/sample/probe"
)

// A recording has a directory of its own below the temporary one. It contains three files: the
// socket, an empty file that a profiler creates if it cannot work (RefusedName), and a lock file.
// The tool holds the lock until it ends. The next recording removes each directory whose lock
// is free.
const (
	privatePrefix = "seedwalk-run-"
	lockName      = "lock"
	socketName    = "socket"
	RefusedName   = "refused"
)

// Folder is the directory of one recording.
type Folder struct {
	Dir  string
	lock *os.File
}

// NewFolder removes the directories of dead tools below parent, and makes one.
func NewFolder(parent string) (*Folder, error) {
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
	return &Folder{dir, lock}, nil
}

func (p *Folder) Path(name string) string { return filepath.Join(p.Dir, name) }

// Close removes the directory. The lock is removed last, so that no other process mistakes
// the directory for that of a dead tool.
func (p *Folder) Close() {
	removeKnown(p.Dir)
	p.lock.Close()
	os.Remove(p.Path(lockName))
	os.Remove(p.Dir)
}

// sweep removes the directories of recordings whose tool is dead. It keeps a directory
// without a lock file, because a tool may be creating it.
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
		os.Remove(dir) // fails if there are other files
	}
}

// removeKnown removes the files that a recording makes, and no others.
func removeKnown(dir string) {
	for _, name := range []string{socketName, RefusedName, probe.LibraryName} {
		os.Remove(filepath.Join(dir, name))
	}
}

// Stream is a connection that can be half closed.
type Stream interface {
	net.Conn
	CloseWrite() error
}

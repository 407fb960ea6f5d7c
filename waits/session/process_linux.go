package session

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/live"
	"github.com/seedwalk/seedwalk/symbol"
	"github.com/seedwalk/seedwalk/waits"
)

// threadName is what the system calls a thread.
func threadName(pid int, tid uint64) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
	return strings.TrimSpace(string(b))
}

// images learns what is mapped in a process now.
func images(n *waits.Names, pid int) {
	if f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		defer f.Close()
		ReadMaps(n, f)
	}
}

// ReadMaps learns what was mapped from lines of /proc/PID/maps.
func ReadMaps(n *waits.Names, in io.Reader) error {
	maps, err := live.ParseMaps(in)
	var out []waits.Image
	for i := range maps {
		if m := &maps[i]; m.Exec && strings.HasPrefix(m.Path, "/") && !strings.HasPrefix(m.Path, "/memfd:") {
			out = append(out, waits.Image{Start: m.Start, End: m.End, Offset: m.Offset, Path: m.Path})
		}
	}
	n.SetNative(newNativeNames().name)
	n.AddImages(out)
	return err
}

// nativeNames names offsets of ELF files.
type nativeNames struct {
	mu       sync.Mutex
	symbols  *symbol.Resolver
	segments map[string][]elf.Segment
}

func newNativeNames() *nativeNames {
	return &nativeNames{symbols: symbol.NewResolver(), segments: map[string][]elf.Segment{}}
}

// name is the function that covers an offset; never the nearest symbol before.
func (n *nativeNames) name(path string, offset uint64) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	segments, ok := n.segments[path]
	if !ok {
		if f, err := elf.Open(path); err == nil {
			segments = f.Segments()
		}
		n.segments[path] = segments
	}
	for i := range segments {
		if s := &segments[i]; offset >= s.Off && offset-s.Off < s.Filesz {
			return n.symbols.Name(path, "", offset-s.Off+s.Vaddr)
		}
	}
	return "", false
}

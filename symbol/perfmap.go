package symbol

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Source: Linux, tools/perf/Documentation/jit-interface.txt. A line of a perf map is an address and a size,
// both hexadecimal, and a name. Freed code keeps its last name.

// Bounds of a perf map.
const (
	maxPerfMap   = 64 << 20 // bytes
	maxPerfLines = 1 << 20
	maxPerfLine  = 1 << 10 // bytes
)

// PerfMap names code that a program compiled at run time, according to the program.
type PerfMap struct {
	ranges Ranges
	names  []string
}

// ParsePerfMap parses a perf map. It skips malformed lines. Of two lines for one address the later one
// counts, because the memory was reused. Of too many lines, the last maxPerfLines count.
func ParsePerfMap(b []byte) *PerfMap {
	m := &PerfMap{}
	for more := bytes.Count(b, []byte("\n")) - maxPerfLines; more > 0; more-- {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	for n := uint64(0); len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		fields := strings.SplitN(strings.TrimSpace(string(line[:min(len(line), maxPerfLine)])), " ", 3)
		if len(fields) != 3 {
			continue
		}
		start, err1 := strconv.ParseUint(strings.TrimPrefix(fields[0], "0x"), 16, 64)
		size, err2 := strconv.ParseUint(strings.TrimPrefix(fields[1], "0x"), 16, 64)
		if err1 != nil || err2 != nil || start+size < start {
			continue
		}
		if m.ranges.Add(Range{Start: start, End: start + size, From: n, Until: Always,
			Value: int32(len(m.names))}) {
			m.names = append(m.names, fields[2])
		}
	}
	return m
}

// Find returns the name of the code at an address.
func (m *PerfMap) Find(addr uint64) (string, bool) {
	i, ok := m.ranges.Find(addr, Always-1)
	if !ok {
		return "", false
	}
	return m.names[i], true
}

// A growing file is read again after a pause: perfPause times the duration of the last reading, and at least
// leastPerfPause.
const (
	perfPause      = 20
	leastPerfPause = 10 * time.Millisecond
)

// perfFile is the perf map of a process. The file is opened while the process runs, because its mount
// namespace disappears with it, and read when a name is needed.
type perfFile struct {
	mu       sync.Mutex
	file     openFile
	size     int64
	modified time.Time
	due      time.Time // the file is not read again before this time
	content  *PerfMap
}

// openFile is an open perf map.
type openFile interface {
	io.ReaderAt
	stat() (size int64, modified time.Time, err error)
}

// find returns the name of the code at an address. It reads the file again if the file has changed.
func (f *perfFile) find(addr uint64) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if began := time.Now(); !began.Before(f.due) {
		f.refresh()
		f.due = time.Now().Add(max(perfPause*time.Since(began), leastPerfPause))
	}
	if f.content == nil {
		return "", false
	}
	return f.content.Find(addr)
}

// refresh reads the file if its size or time has changed since the last reading. It reads at most the last
// maxPerfMap bytes: a program appends its newest code.
func (f *perfFile) refresh() {
	size, modified, err := f.file.stat()
	if err != nil || f.content != nil && size == f.size && modified.Equal(f.modified) {
		return
	}
	from := max(0, size-maxPerfMap)
	b, err := io.ReadAll(io.NewSectionReader(f.file, from, size-from))
	if err != nil {
		return
	}
	if from > 0 { // the first line is cut
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	f.size, f.modified, f.content = size, modified, ParsePerfMap(b)
}

// jitPrefix is the prefix of every JITPath.
const jitPrefix = "[jit "

// JITPath returns a path for code that a process compiled at run time. Its addresses are those of the
// process.
func JITPath(pid int) string { return fmt.Sprintf("%s%d]", jitPrefix, pid) }

// maxPerfFiles bounds the open perf maps of a Resolver.
const maxPerfFiles = 256

// KeepPerfMap opens the perf map of a running process of this machine, for the names of JITPath. It reports
// whether the Resolver has one. If not, a later call tries again.
func (r *Resolver) KeepPerfMap(pid int) bool {
	path := JITPath(pid)
	r.mu.Lock()
	known, full := r.perf[path] != nil, len(r.perf) >= maxPerfFiles
	r.mu.Unlock()
	if known || full {
		return known
	}
	f := openPerfMap(pid)
	if f == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.perf == nil {
		r.perf = map[string]*perfFile{}
	}
	r.perf[path] = &perfFile{file: f}
	return true
}

// jitName names an address of JITPath.
func (r *Resolver) jitName(path string, addr uint64) (string, bool) {
	r.mu.Lock()
	f := r.perf[path]
	r.mu.Unlock()
	if f == nil {
		return "", false
	}
	return f.find(addr)
}

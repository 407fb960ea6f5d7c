package continuous

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Ends of the names of profiles in the spool.
const (
	partSuffix  = ".part" // being written
	pprofSuffix = ".pb.gz"
	otlpSuffix  = ".otlp.gz"
)

// ownName matches the names of an agent's files: TIME-PID-NAME of a recording or of an unfinished profile,
// and the names that spooled.file makes. TIME has 13 digits, so that names sort by time.
var ownName = regexp.MustCompile(`^\d{13}-\d{1,13}-[A-Za-z0-9._-]{1,100}\.(?:swrec|swrec\.partial|part|pb\.gz|otlp\.gz)$`)

// folder is a folder with a bound on the total size of the agent's files. It ignores other files.
type folder struct {
	dir     string
	suffix  string
	bound   int64
	dropped *atomic.Int64

	mu sync.Mutex
}

// files returns the names of complete files, oldest first, and their total size.
func (f *folder) files() (names []string, size int64) {
	entries, _ := os.ReadDir(f.dir) // sorted by name; what was read before an error counts
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), f.suffix) ||
			!ownName.MatchString(e.Name()) {
			continue
		}
		names, size = append(names, e.Name()), size+info.Size()
	}
	return names, size
}

// ending returns the paths of the agent's files whose names end in suffix, oldest first.
func (f *folder) ending(suffix string) (paths []string) {
	entries, _ := os.ReadDir(f.dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && ownName.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(f.dir, e.Name()))
		}
	}
	return paths
}

// trim deletes the oldest files until the rest fits.
func (f *folder) trim() {
	f.mu.Lock()
	defer f.mu.Unlock()
	names, size := f.files()
	for _, name := range names {
		if size <= f.bound {
			return
		}
		path := filepath.Join(f.dir, name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if os.Remove(path) == nil {
			size -= info.Size()
			f.dropped.Add(1)
		}
	}
}

// spooled is the content of the name of a file in the spool.
type spooled struct {
	From, Until time.Time
	PID         int
	Rate        float64
	Name        string
}

func (s spooled) file(suffix string) string {
	return fmt.Sprintf("%013d-%013d-%d-%.2f-%s%s", s.From.UnixMilli(), s.Until.UnixMilli(),
		s.PID, s.Rate, s.Name, suffix)
}

var spooledName = regexp.MustCompile(`^(\d{13})-(\d{13})-(\d{1,10})-([0-9.]{1,12})-([A-Za-z0-9._-]{1,60}?)\.(?:pb|otlp)\.gz$`)

func parseSpooled(name string) (s spooled, ok bool) {
	m := spooledName.FindStringSubmatch(name)
	if m == nil {
		return s, false
	}
	from, err1 := strconv.ParseInt(m[1], 10, 64)
	until, err2 := strconv.ParseInt(m[2], 10, 64)
	pid, err3 := strconv.Atoi(m[3])
	rate, err4 := strconv.ParseFloat(m[4], 64)
	ok = err1 == nil && err2 == nil && err3 == nil && err4 == nil
	return spooled{time.UnixMilli(from), time.UnixMilli(until), pid, rate, m[5]}, ok
}

var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// safeName returns a service's name with only those characters that file names and labels may have, 60
// of them at most.
func safeName(s string) string {
	s = strings.Trim(unsafe.ReplaceAllString(s, "_"), "._-")
	if s == "" {
		return "unnamed"
	}
	return s[:min(len(s), 60)]
}

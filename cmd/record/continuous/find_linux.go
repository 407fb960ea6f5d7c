package continuous

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/internal/procstat"
)

// process identifies a process even if its number is used again: start then differs.
type process struct {
	pid   int
	start uint64 // ticks since the machine started
	name  string
}

// tries bounds how often a process is asked whether it has a .NET runtime, which a starting process may
// load late. The pause grows with each try.
const tries = 6

// settled is the number of listings after which a known process is checked again: its
// number may have been reused.
const settled = 10

// finder looks for targets. It remembers the results for all processes.
type finder struct {
	rules Rules
	seen  map[int]*sighting
}

type sighting struct {
	start  uint64
	first  time.Time
	tries  int
	target *process // nil: the process is no target
	rest   int      // listings until the process is checked again
}

func newFinder(r Rules) *finder { return &finder{rules: r, seen: map[int]*sighting{}} }

// find lists the targets.
func (f *finder) find(now time.Time) (out []process) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	seen, own := make(map[int]*sighting, len(f.seen)), os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == own {
			continue
		}
		if s := f.sight(pid, now); s != nil {
			seen[pid] = s
			if s.target != nil {
				out = append(out, *s.target)
			}
		}
	}
	f.seen = seen
	return out
}

// sight returns what is known of a process, and checks it if that is due. It returns nil if the process
// has ended.
func (f *finder) sight(pid int, now time.Time) *sighting {
	s := f.seen[pid]
	if s != nil && s.rest > 0 {
		s.rest--
		return s
	}
	start, ok := startOf(pid)
	if !ok {
		return nil
	}
	if s == nil || s.start != start {
		s = &sighting{start: start, first: now}
	}
	isTarget := s.target != nil
	if !isTarget && s.tries < tries && now.Sub(s.first) >= minAge {
		s.tries++
		isTarget = f.isTarget(pid)
		s.rest = s.tries
	}
	if isTarget { // it may be another program since the last time
		s.target = &process{pid, start, nameOf(pid)}
	}
	if s.target != nil || s.tries == tries {
		s.rest = settled
	}
	return s
}

func (f *finder) isTarget(pid int) bool {
	facts := facts{pid: pid, user: -1}
	dir := fmt.Sprintf("/proc/%d", pid)
	if st, err := os.Stat(dir); err == nil {
		facts.user = int(st.Sys().(*syscall.Stat_t).Uid)
	}
	if f.rules.Command != nil {
		command, _ := procstat.ReadFile(dir + "/cmdline")
		facts.command = string(bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '}))
	}
	if f.rules.Cgroup != nil {
		cgroup, _ := procstat.ReadFile(dir + "/cgroup")
		facts.cgroup = string(cgroup)
	}
	if !f.rules.match(&facts) {
		return false
	}
	_, err := diagnostics.Process(pid)
	var failed *diagnostics.FindError // a process that cannot answer now is .NET all the same
	return err == nil || errors.As(err, &failed) && failed.Why == diagnostics.NoFiles
}

// nameOf returns the name of what a process runs: the first argument that ends in .dll or .exe, without
// that ending, or else the program.
func nameOf(pid int) string {
	data, _ := procstat.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
	for _, arg := range args[1:] {
		if base := filepath.Base(arg); strings.HasSuffix(base, ".dll") || strings.HasSuffix(base, ".exe") {
			return safeName(strings.TrimSuffix(strings.TrimSuffix(base, ".dll"), ".exe"))
		}
	}
	return safeName(filepath.Base(args[0]))
}

// startOf returns when a process started, in ticks since the machine started. It returns false for a
// zombie, and if the process has ended.
func startOf(pid int) (uint64, bool) {
	stat := procstat.Read(pid)
	return stat.Number(procstat.Start), !stat.Ended()
}

func alive(p process) bool {
	start, ok := startOf(p.pid)
	return ok && start == p.start
}

// lock opens a file and locks it (flock(2)) until it is closed or the process ends. A file system
// without locks is accepted.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK {
		f.Close()
		return nil, errInUse
	}
	return f, nil
}

// ownUsage returns what this process uses. Memory is the resident memory that belongs to no file.
func ownUsage() (u usage) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		u.CPU = time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	data, _ := procstat.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(data); len(fields) > 2 {
		resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		files, _ := strconv.ParseInt(string(fields[2]), 10, 64)
		u.Memory = (resident - files) * int64(os.Getpagesize())
	}
	return u
}

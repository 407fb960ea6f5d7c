package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seedwalk/seedwalk/cmd/record/inflow"
	"github.com/seedwalk/seedwalk/cmd/record/listen"
	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/internal/procstat"
)

// Processes that the command leaves running when it ends. If nothing else is recorded, they are what the user
// wants, and the recording continues until they end. Otherwise they are helpers such as build servers, which
// may run for a quarter of an hour: they are named in a note.

// leftWait is how long a process that the command left running may take to load a runtime.
var leftWait = 3 * time.Second

// leftPoll is the time between two polls of the processes that were left running.
const leftPoll = 100 * time.Millisecond

// maxEnviron limits how much is read of a process's environment.
const maxEnviron = 4 << 20

// followLeft returns a channel that is closed when every process that the command left running has ended, nil
// if none is to be followed. It ends early if ending is closed.
func (r *run) followLeft(ending <-chan struct{}) <-chan struct{} {
	r.srv.acceptWaiting()
	live, connected := r.srv.living()
	helpers := len(connected) > len(live) && r.opt.Duration == 0
	if helpers || len(live) == 0 && (len(connected) > 0 || len(inheritors(r.srv.path)) == 0) {
		r.left = live
		return nil
	}
	done, limit := make(chan struct{}), time.Now().Add(leftWait)
	go func() {
		defer close(done)
		r.awaitLeft(ending, limit)
	}()
	return done
}

// awaitLeft returns when every process that the command left running has ended, or none has loaded a runtime
// at the limit.
func (r *run) awaitLeft(ending <-chan struct{}, limit time.Time) {
	for {
		live, connected := r.srv.living()
		r.follows(live)
		if len(live) == 0 {
			others := inheritors(r.srv.path)
			if len(connected) > 0 || len(others) == 0 {
				return
			}
			if time.Now().After(limit) {
				r.srv.note(fmt.Sprintf("the command ended and left %s running, which has loaded no .NET runtime since", namedAll(others)))
				return
			}
		}
		select {
		case <-ending:
			return
		case <-time.After(leftPoll):
		}
	}
}

// follows reports to the user, once per process, why the recording continues.
func (r *run) follows(live []*inflow.Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range live {
		if !slices.Contains(r.left, p) {
			r.left = append(r.left, p)
			r.opt.Say(fmt.Sprintf("the command has ended; process %d (%s), which it left running, is recorded until it ends, or until Ctrl-C", p.PID, p.Name))
		}
	}
}

// noteLeft notes which processes that the command left running are in the profile.
func (r *run) noteLeft() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 {
		return
	}
	who, until := "1 process that the command left running was", "it ended"
	if len(r.left) > 1 {
		who, until = fmt.Sprintf("%d processes that the command left running were", len(r.left)), "they ended"
	}
	if live, _ := r.srv.living(); len(live) > 0 {
		until = "the recording ended"
	}
	var names []string
	for _, p := range r.left[:min(len(r.left), maxNamed)] {
		names = append(names, fmt.Sprintf("process %d (%s)", p.PID, p.Name))
	}
	r.srv.note(fmt.Sprintf("%s recorded until %s: %s", who, until, strings.Join(names, ", ")))
}

// maxNamed limits the processes that one line names.
const maxNamed = 8

func namedAll(pids []int) string {
	var out []string
	for _, pid := range pids[:min(len(pids), maxNamed)] {
		out = append(out, fmt.Sprintf("process %d (%s)", pid, listen.ProcessName(pid)))
	}
	return strings.Join(out, ", ")
}

// living returns the processes that have connected, and those of them that still run.
func (s *server) living() (live, connected []*inflow.Process) {
	connected = s.all()
	for _, p := range connected {
		select {
		case <-p.Gone:
		default:
			if runs(p.PID) {
				live = append(live, p)
			}
		}
	}
	return live, connected
}

// runs reports whether a process exists and has not ended.
func runs(pid int) bool { return !procstat.Read(pid).Ended() }

// follow looks for processes of the command that do not see our library or socket. The others connect by
// themselves.
func (r *run) follow() { go r.awaitUnreached() }

// Times between two searches for unreachable processes: doubled after each search.
const (
	firstSearch = 20 * time.Millisecond
	lastSearch  = 5 * time.Second
)

// awaitUnreached notes the first process of the command whose file system lacks our files. It reports to the
// user at once if the process has a runtime that could be recorded otherwise. It returns when a process has
// connected, or the recording has ended.
func (r *run) awaitUnreached() {
	noted := false
	for pause := firstSearch; ; pause = min(2*pause, lastSearch) {
		select {
		case <-r.srv.connected:
			return
		case <-r.over:
			return
		case <-time.After(pause):
		}
		for _, pid := range inheritors(r.srv.path) {
			line := unreached(pid, r.opt.Profiler, r.srv.path)
			if line == "" {
				continue
			}
			if !noted {
				noted = true
				r.srv.note(line)
			}
			if _, err := diagnostics.Process(pid); err == nil {
				r.opt.Say(line)
				return
			}
		}
	}
}

// unreached returns why a process cannot load our library or connect, and what to do, if its file system
// lacks one of the files that this needs; otherwise "".
func unreached(pid int, needs ...string) string {
	at := fmt.Sprintf("/proc/%d/root", pid)
	lacks := slices.IndexFunc(needs, func(file string) bool {
		_, err := os.Stat(at + file)
		return errors.Is(err, os.ErrNotExist)
	})
	if lacks < 0 || !runs(pid) {
		return ""
	}
	where, inside := "other mounts", ""
	if root, err := os.Readlink(at); err == nil && root != "/" {
		where, inside = "the root folder "+root, fmt.Sprintf(" (chroot %s seedwalk record -- COMMAND)", root)
	}
	return fmt.Sprintf("process %d (%s) has %s and does not see %s there: run seedwalk in there%s, or record the process while it runs (seedwalk record --pid %d)",
		pid, listen.ProcessName(pid), where, needs[lacks], inside, pid)
}

// inheritors returns the running processes whose environment names our socket, and young processes
// without environment and arguments: these are about to execute a program.
func inheritors(socket string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	setting := []byte("\x00" + options.EnvSocket + "=" + socket + "\x00")
	ours := procstat.Read(os.Getpid()).Number(procstat.Start)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := environOf(pid)
		if err != nil {
			continue
		}
		if stat := procstat.Read(pid); len(env) == 0 && (stat.Ended() ||
			stat.Number(procstat.Start) < ours || !hasProgram(pid) || hasArguments(pid)) {
			continue
		}
		if len(env) == 0 || bytes.Contains(append([]byte{0}, env...), setting) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func environOf(pid int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxEnviron))
}

// hasArguments reports whether a process has arguments, the program's name included. The kernel sets them
// just before the environment.
func hasArguments(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return len(b) > 0
}

// hasProgram reports whether a process has a program: the kernel's own threads have none.
func hasProgram(pid int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil
}

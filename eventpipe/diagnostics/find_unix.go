//go:build unix

package diagnostics

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/seedwalk/seedwalk/internal/emulator"
	"github.com/seedwalk/seedwalk/internal/procstat"
)

// Process returns a client of a process's default port. It also finds processes in containers, if this
// process can access their file systems.
func Process(pid int) (*Client, error) {
	path, err := socket("/proc", pid)
	if err != nil {
		return nil, err
	}
	if !hasFreeFiles("/proc", pid) {
		return nil, &FindError{pid, NoFiles, nil}
	}
	return NewClient(pid, func() (io.ReadWriteCloser, error) {
		conn, err := net.Dial("unix", path)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, &FindError{pid, Denied, err}
		case errors.Is(err, syscall.ECONNREFUSED):
			return nil, &FindError{pid, Stale, err}
		case err != nil:
			return nil, &FindError{pid, NoServer, err}
		}
		return conn, nil
	}), nil
}

// socket finds a process's socket: its name contains the process's id in its own namespace, and its start
// time.
func socket(proc string, pid int) (string, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", &FindError{pid, NoProcess, nil}
	}
	fields := procstat.Parse(stat)
	start := fields.Field(procstat.Start)
	if start == "" {
		return "", &FindError{pid, NoProcess, errors.New("its stat cannot be read")}
	}
	var last error
	inner := innerPID(dir, pid)
	// an emulated program sees another start time: that of the emulator
	emulated := emulator.Of(dir) != ""
	for _, tmp := range temporary(dir) {
		path := filepath.Join(tmp, fmt.Sprintf("dotnet-diagnostic-%d-%s-socket", inner, start))
		if _, last = os.Stat(path); last == nil {
			return path, nil
		}
		if path := first(tmp, inner, start); emulated && path != "" {
			return path, nil
		}
	}
	switch {
	case fields.Ended() && fields.Number(procstat.Threads) <= 1: // others may outlive the main thread
		return "", &FindError{pid, Ended, nil}
	case fields.Kernel():
		return "", &FindError{pid, Kernel, nil}
	case errors.Is(last, fs.ErrPermission):
		return "", &FindError{pid, Denied, last}
	}
	return "", &FindError{pid, NoServer, nil}
}

// neededFiles is the number of free descriptors that the process needs. A session with the list of methods
// takes five of them. With three or four, the runtime of .NET 9 aborts ("Out of memory"). The rest is for the
// program itself.
const neededFiles = 8

// hasFreeFiles reports whether the process may open neededFiles more files. It is true if that is unknown.
// A runtime without a free descriptor does not accept connections: they would wait for their time limit.
func hasFreeFiles(proc string, pid int) bool {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	limits, _ := os.ReadFile(filepath.Join(dir, "limits"))
	_, line, found := bytes.Cut(limits, []byte("Max open files"))
	values := strings.Fields(string(line))
	if !found || len(values) == 0 {
		return true
	}
	limit, err := strconv.Atoi(values[0]) // the soft limit: each descriptor is below it
	if err != nil {
		return true
	}
	files, err := os.Open(filepath.Join(dir, "fd"))
	if err != nil {
		return true
	}
	defer files.Close()
	names, err := files.Readdirnames(-1)
	free := limit
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd < limit {
			free--
		}
	}
	return err != nil || free >= neededFiles
}

// first returns the first socket with a process's number that is not older than the process. Older ones
// belonged to former processes with that number.
func first(tmp string, pid int, start string) (path string) {
	least, _ := strconv.ParseUint(start, 10, 64)
	prefix := fmt.Sprintf("dotnet-diagnostic-%d-", pid)
	found, _ := filepath.Glob(filepath.Join(tmp, prefix+"*-socket"))
	best := uint64(0)
	for _, f := range found {
		digits := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), prefix), "-socket")
		if at, err := strconv.ParseUint(digits, 10, 64); err == nil && at >= least &&
			(path == "" || at < best) {
			path, best = f, at
		}
	}
	return path
}

// temporary lists the folders that may contain the socket: the process's own TMPDIR, seen through its root,
// and /tmp.
func temporary(dir string) (out []string) {
	add := func(tmp string) {
		out = append(out, filepath.Join(dir, "root", tmp), tmp)
	}
	env, _ := os.ReadFile(filepath.Join(dir, "environ"))
	for _, v := range bytes.Split(env, []byte{0}) {
		if tmp, ok := bytes.CutPrefix(v, []byte("TMPDIR=")); ok && len(tmp) > 0 {
			add(string(tmp))
		}
	}
	add("/tmp")
	return append(out, os.TempDir())
}

// innerPID returns the process's id in its own namespace.
func innerPID(dir string, pid int) int {
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for _, line := range strings.Split(string(status), "\n") {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if f := strings.Fields(ids); len(f) > 0 {
				if inner, err := strconv.Atoi(f[len(f)-1]); err == nil {
					return inner
				}
			}
		}
	}
	return pid
}

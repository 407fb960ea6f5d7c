package record

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/cmd/record/options"
	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/internal/procstat"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/sample/paused"
	"github.com/seedwalk/seedwalk/sample/probe"
	"github.com/seedwalk/seedwalk/sample/stopped"
	"github.com/seedwalk/seedwalk/sample/target"
)

// clsid is CLSID as it is in memory: the first three fields little endian.
var clsid = [16]byte{0xc0, 0xa1, 0xed, 0x5e, 0xed, 0x5e, 0x1c, 0x4a, 0xa5, 0xee,
	0xd5, 0xee, 0xd5, 0xee, 0xd0, 0x01}

// attachLimit is how long the runtime may take to load the probe.
const attachLimit = 20 * time.Second

// attachable checks whether a running process can be recorded, before the recording begins. It returns nil if
// no obstacle is known, otherwise the obstacle and a remedy. It completes the options for that process.
func attachable(o *options.Options) *options.Refusal {
	if o.Part.Set() { // another recording has attached to it
		return nil
	}
	where := fmt.Sprintf("process %d", o.PID)
	no := func(what, remedy string) *options.Refusal {
		return options.Refuse(where, what, remedy)
	}
	if leader := threadGroup(o.PID); leader != o.PID {
		return no(fmt.Sprintf("it is a thread of process %d", leader), fmt.Sprintf("use --pid %d", leader))
	}
	if o.Outside {
		if err := paused.Lookable(o.PID); err != nil {
			return options.Refuse("--outside", err.Error(),
				"seedwalk doctor --pid "+strconv.Itoa(o.PID)+" explains why")
		}
		return nil
	}
	if r := serveUser(o, no); r != nil {
		return r
	}
	if err := paused.Foreign(o.PID); err != nil {
		return no("it is for another architecture", "use a seedwalk for that architecture")
	}
	if r := enter(o, no); r != nil {
		return r
	}
	if _, err := diagnostics.Process(o.PID); err != nil {
		why, e := strings.TrimPrefix(err.Error(), where+": "), (*diagnostics.FindError)(nil)
		switch isFind := errors.As(err, &e); {
		case isFind && (e.Why == diagnostics.Ended || e.Why == diagnostics.Kernel):
			return no(why, "it has no stacks")
		case isFind && e.Why == diagnostics.NoServer && endsNow(o.PID):
			return endedFirst(where)
		}
		return no(why, "use record --pid PID --outside or seedwalk stack, which need no diagnostics port")
	}
	if diagnostics.IsStopped(o.PID) {
		return no("a signal has stopped it", fmt.Sprintf("kill -CONT %d continues it", o.PID))
	}
	if why := target.Refuses(o.PID); why != "" {
		if endsNow(o.PID) {
			return endedFirst(where)
		}
		return no(why, "start it with seedwalk record -- COMMAND, which can suspend the runtime, or record its native frames with --outside")
	}
	reuse(o)
	return nil
}

// endsNow reports whether a process has ended or ends within 100 ms. Its port and its memory disappear first.
func endsNow(pid int) bool {
	for end := time.Now().Add(100 * time.Millisecond); runs(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func endedFirst(where string) *options.Refusal {
	return options.Refuse(where, "it ended before the probe was loaded",
		"record it from its start: seedwalk record -- COMMAND")
}

// threadGroup returns the process that a thread belongs to, or pid itself if that is unknown.
func threadGroup(pid int) int {
	leader := pid
	fmt.Sscan(procstat.Status(pid)["Tgid"], &leader)
	return leader
}

// enter makes the socket and the probe visible to a process with another file system, such as a container's,
// or with another root (chroot).
func enter(o *options.Options, no func(what, remedy string) *options.Refusal) *options.Refusal {
	theirs, err1 := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", o.PID))
	ours, err2 := os.Readlink("/proc/self/ns/mnt")
	root := fmt.Sprintf("/proc/%d/root", o.PID)
	if err1 != nil || err2 != nil || theirs == ours && !otherRoot(root) {
		return nil
	}
	// A link would lead to a place outside the container. The folder stays open, so that none can replace it.
	fd, err := unix.Open(root+"/tmp", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return no("it is in a container or a chroot whose /tmp is a link",
			"run seedwalk in there, or use seedwalk stack, which needs no /tmp")
	}
	dir := ""
	if err == nil {
		o.Tmp, o.SocketDir, o.Probe = os.NewFile(uintptr(fd), "/tmp"), fmt.Sprintf("/proc/self/fd/%d", fd), ""
		dir, err = os.MkdirTemp(o.SocketDir, "seedwalk-try-")
	}
	if err != nil {
		return no("it is in a container or a chroot whose /tmp cannot be written: "+options.Reason(err),
			"run seedwalk in there or as root, or use seedwalk stack, which needs no /tmp")
	}
	os.Remove(dir)
	return nil
}

// otherRoot reports whether root is another folder than this process's own root.
func otherRoot(root string) bool {
	theirs, err1 := os.Stat(root)
	ours, err2 := os.Stat("/")
	return err1 == nil && err2 == nil && !os.SameFile(theirs, ours)
}

// reuse finds the probe that an earlier recording has left in the process: a library that is still mapped is
// loaded again by its old name.
func reuse(o *options.Options) {
	maps, _ := live.Maps(o.PID)
	root, _ := os.Readlink(fmt.Sprintf("/proc/%d/root", o.PID))
	for i := range maps {
		path := strings.TrimSuffix(maps[i].Path, " (deleted)")
		if filepath.Base(path) == probe.LibraryName && strings.HasPrefix(path, "/") {
			o.Probe, o.Reused = within(root, path), true
			return
		}
	}
}

// within returns a path as a process with that root sees it. Outside of a chroot, paths begin with its root.
func within(root, path string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/"); ok {
		return "/" + rest
	}
	return path
}

// attach begins to record a running process: it joins another recording, or makes the process's runtime
// load the probe. r.exited is closed when the process has ended.
func (r *run) attach() error {
	if r.opt.Outside {
		return r.stopper()
	}
	if r.opt.Part.Set() {
		return r.joinPart()
	}
	release, err := r.joinOrClaim()
	defer release()
	switch refused := (*options.Refusal)(nil); {
	case err == nil:
		go r.awaitEnd()
		return nil
	case errors.As(err, &refused):
		return refused
	}
	client, err := diagnostics.Process(r.opt.PID)
	if err != nil {
		if endsNow(r.opt.PID) {
			return endedFirst(fmt.Sprintf("process %d", r.opt.PID))
		}
		return options.Refuse("--pid", err.Error(), "try again")
	}
	answer, known, err := r.load(client)
	if r.awaitProbe() {
		go r.awaitEnd()
		return nil
	}
	return r.notLoaded(answer, known, err)
}

// notLoaded returns why no probe has connected, although the runtime was asked to load it. known is true if
// the runtime answered.
func (r *run) notLoaded(answer diagnostics.HResult, known bool, err error) *options.Refusal {
	where := fmt.Sprintf("process %d", r.opt.PID)
	refused := r.srv.lastRefused()
	switch {
	case endsNow(r.opt.PID):
		return endedFirst(where)
	case refused != "":
		return options.Refuse(where, "the probe was loaded, but: "+refused, "try again")
	case known && answer == diagnostics.Cancelled:
		return options.Refuse(where,
			"the probe was loaded and did not connect: another seedwalk records the process, one of another version has recorded it, or the process can create a file neither in memory nor in /dev/shm",
			"wait until that recording ends, restart the process, or allow memfd_create in its seccomp filter")
	case known && answer == diagnostics.AlreadyActive:
		return options.Refuse(where, "another profiler is loaded in it",
			"use record --pid PID --outside or seedwalk stack, which need no profiler")
	case err != nil:
		return options.Refuse(where, "the runtime does not load the probe: "+err.Error(),
			"check that DOTNET_EnableDiagnostics_Profiler is not 0 in its environment")
	}
	return options.Refuse(where, "the probe was loaded and did not connect", "try again")
}

// awaitProbe waits until a loaded probe has connected. It returns false if the probe's file does not arrive
// in time. After that there is no time limit, because the tool itself does the rest.
func (r *run) awaitProbe() bool {
	limit := 2 * time.Second
	if r.opt.OfAgent() { // the agent's recordings may wait long
		limit = attachLimit
	}
	select {
	case <-r.srv.connected:
	case <-time.After(limit):
	case <-r.srv.greeted:
		select {
		case <-r.srv.connected:
		case <-r.srv.failed:
		}
	}
	return r.connected(0) // several of these may have happened
}

// Limits of the retries of load.
const (
	detachLimit = 3 * time.Second  // for a probe to notice that its tool is dead, and to end its session
	startLimit  = 30 * time.Second // for a runtime to start, under an emulator too
)

// load asks the runtime to load the probe. It retries while the runtime is starting, and while a
// probe of an earlier recording ends its session of events.
func (r *run) load(client *diagnostics.Client) (answer diagnostics.HResult, known bool, err error) {
	for begin := time.Now(); ; time.Sleep(250 * time.Millisecond) {
		err = client.Attach(diagnostics.Profiler{CLSID: clsid, Path: r.opt.Probe,
			Data: []byte(r.opt.Inside(r.srv.path)), Timeout: attachLimit})
		known = errors.As(err, &answer)
		if r.connected(200*time.Millisecond) || time.Since(begin) > r.retryLimit(answer, known) {
			return answer, known, err
		}
	}
}

// retryLimit returns for how long a result of the runtime is worth a retry.
func (r *run) retryLimit(answer diagnostics.HResult, known bool) time.Duration {
	switch {
	case known && answer == diagnostics.NotYetAvailable:
		return startLimit
	case known && r.opt.Reused && (answer == diagnostics.AlreadyActive || answer == diagnostics.Cancelled):
		return detachLimit
	}
	return -1
}

// stopper samples the process from outside, without a probe.
func (r *run) stopper() error {
	here, there := net.Pipe()
	e, err := stopped.New(r.opt.PID, r.srv.outside, there)
	if err != nil {
		return options.Refuse("--outside", err.Error(),
			"seedwalk doctor --pid "+strconv.Itoa(r.opt.PID)+" explains why")
	}
	r.srv.add(running(e, here, there), r.opt.PID)
	go r.awaitEnd()
	return nil
}

// connected reports whether the probe connects within a time.
func (r *run) connected(limit time.Duration) bool {
	select {
	case <-r.srv.connected:
	case <-time.After(limit):
	}
	return r.srv.count().Processes > 0
}

// awaitEnd waits for the end of a recorded process that is not our child.
func (r *run) awaitEnd() {
	fd, err := unix.PidfdOpen(r.opt.PID, unix.PIDFD_NONBLOCK)
	if err != nil { // an old kernel, or the process has ended
		r.pollEnd()
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	go func() {
		<-r.over
		f.Close()
	}()
	c, err := f.SyscallConn()
	if err == nil && c.Read(ended) == nil { // Go's poller waits
		close(r.exited)
		return
	}
	r.pollEnd()
}

// ended reports whether the process of a descriptor has ended.
func ended(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return n > 0 && err == nil
}

// pollEnd is awaitEnd without a descriptor of the process. It notices the end only once the process's
// parent has waited for it.
func (r *run) pollEnd() {
	for {
		select {
		case <-r.over:
			return
		case <-time.After(100 * time.Millisecond):
		}
		if errors.Is(syscall.Kill(r.opt.PID, 0), syscall.ESRCH) {
			close(r.exited)
			return
		}
	}
}

// userOf returns the effective user of a process.
func userOf(pid int) (uid int, ok bool) {
	var real int
	n, err := fmt.Sscanf(procstat.Status(pid)["Uid"], "%d %d", &real, &uid)
	return uid, n == 2 && err == nil
}

// serveUser prepares the recording of another user's process, which only root may do: that user must be able
// to reach the socket and the probe.
func serveUser(o *options.Options, no func(what, remedy string) *options.Refusal) *options.Refusal {
	user, ok := userOf(o.PID)
	switch {
	case !ok:
		return no("there is no such process", "find its PID with ps")
	case user == os.Geteuid():
		return nil
	case os.Geteuid() != 0:
		return no(fmt.Sprintf("it belongs to user %d", user), "run seedwalk as that user or as root")
	}
	o.User, o.Probe = user, "" // that user may not be allowed to read the tool's own folder
	if !openToAll(o.SocketDir) {
		o.SocketDir = "/tmp"
	}
	return nil
}

// openToAll reports whether every user can open files below a folder.
func openToAll(dir string) bool {
	dir, err := filepath.EvalSymlinks(options.Absolute(dir))
	for err == nil {
		var info os.FileInfo
		if info, err = os.Stat(dir); err != nil || info.Mode()&1 == 0 {
			return false
		}
		if dir == "/" {
			return true
		}
		dir = filepath.Dir(dir)
	}
	return false
}

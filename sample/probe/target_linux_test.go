package probe

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// target is a running program of testdata that loads the probe.
type target struct {
	f     *File
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// compiled builds testdata/NAME.c.
func compiled(t *testing.T, name string) (exe string) {
	t.Helper()
	exe = filepath.Join(t.TempDir(), name)
	c := exec.Command("gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", exe,
		"testdata/"+name+".c", "-ldl", "-lpthread")
	must.Run(t, c)
	return exe
}

// startTarget starts a program and waits until its probe has connected.
func startTarget(t *testing.T, exe, library string, events uint32, least time.Duration) *target {
	t.Helper()
	dir := t.TempDir()
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"}))(t)
	t.Cleanup(func() { l.Close() })
	cmd := exec.Command(exe, library)
	cmd.Env = append(os.Environ(), "SEEDWALK_SOCKET="+filepath.Join(dir, "s"))
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	f := toolEnd(t, l, cmd.Process.Pid, events, least)
	t.Cleanup(func() { f.Close() })
	return &target{f, cmd, in, bufio.NewScanner(out)}
}

// toolEnd is the tool's side of the socket. It returns the file of the probe that connects.
func toolEnd(t *testing.T, l *net.UnixListener, pid int, events uint32, least time.Duration) *File {
	t.Helper()
	for {
		l.SetDeadline(time.Now().Add(20 * time.Second))
		c, err := l.AcceptUnix()
		must.Do(t, err)
		first, control := make([]byte, 8), make([]byte, unix.CmsgSpace(4))
		n, oob, _, _, err := c.ReadMsgUnix(first, control)
		must.True(t, err == nil && n == 8 && binary.LittleEndian.Uint64(first) == Magic,
			"%d bytes, %v", n, err)
		if oob == 0 { // a greeting without a file
			c.Close()
			continue
		}
		messages, _ := unix.ParseSocketControlMessage(control[:oob])
		fds, err := unix.ParseUnixRights(&messages[0])
		must.Do(t, err)
		f, err := Open(fds[0], pid)
		unix.Close(fds[0])
		must.Do(t, err)
		f.Want(events, uint64(least))
		c.Close()
		return f
	}
}

// While the bounds of a thread's own stack are unknown, a sample reaches up to where the C library keeps the
// thread's data. On a stack that is certainly another one, it reaches less far.
func TestReach(t *testing.T) {
	t.Parallel()
	r, tell := startFaults(t)
	defer r.f.beating()()
	tid, err := strconv.Atoi(tell("d"))
	must.True(t, err == nil && tid != 0, "%v %v", tid, err)
	slot, err := r.f.Slot(uint32(tid))
	must.Do(t, err)
	ask := func(op Op) (last Record) {
		t.Helper()
		must.Do(t, r.f.Ask(slot, op, int(unix.SIGURG)))
		answered(t, "by the deep thread", func() bool { return r.f.Answered(slot) })
		r.f.Read(func(rec *Record) { last = *rec })
		return last
	}
	ask(OpArm)
	_, _, base := r.f.Armed(slot)
	early := ask(OpSample)
	end := early.StackAddr + uint64(len(early.Stack))
	expect.True(t, len(early.Stack) >= 300<<10 && end == base&^7 && early.Flags&Foreign != 0,
		"%d bytes, up to %#x of %#x, flags %d", len(early.Stack), end, base, early.Flags)
	const elsewhere = 1 << 20
	r.f.SetStack(slot, elsewhere, 2*elsewhere)
	if other := ask(OpSample); len(other.Stack) != 1<<16 || other.Flags&Foreign == 0 {
		t.Errorf("of another stack %d bytes, flags %d", len(other.Stack), other.Flags)
	}
}

// The architecture of a file is read once: the target can write it at any time.
func TestFileOfArch(t *testing.T) {
	for _, c := range []struct {
		name string
		arch uint32
		want context.Arch
	}{
		{"x86-64", uint32(context.ArchAMD64), context.ArchAMD64},
		{"ARM64", uint32(context.ArchARM64), context.ArchARM64},
		{"none", 0, context.NoArch},
		{"unknown", uint32(context.ArchARM64) + 1, context.NoArch},
		{"wide", 1<<8 | uint32(context.ArchAMD64), context.NoArch},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Create(t.TempDir() + "/file")
			must.Do(t, err)
			defer f.Close()
			h := header{magic: Magic, version: Version, arch: c.arch}
			if _, err := f.Write(unsafe.Slice((*byte)(unsafe.Pointer(&h)), unsafe.Sizeof(h))); err != nil {
				t.Fatal(err)
			}
			must.Do(t, f.Truncate(FullSize))
			p, err := Open(int(f.Fd()), os.Getpid())
			must.Equal(t, err == nil, c.want != context.NoArch, err)
			if err != nil {
				return
			}
			defer p.Close()
			p.h.arch = 3 - c.arch
			expect.True(t, p.Arch() == c.want && p.form == formats[c.want], "%v, %v", p.Arch(), p.form)
		})
	}
}

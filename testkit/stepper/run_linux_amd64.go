package stepper

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/seedwalk/seedwalk/process/live"
	"golang.org/x/sys/unix"
)

// Point is one instruction of a run. It is valid during the visit only.
type Point struct {
	Regs  Regs
	Calls []Call // innermost last
	Maps  []live.Mapping
	Fresh bool   // Maps changed since the last point
	Low   uint64 // address of Stack[0], below the stack pointer
	Stack []byte // up to the stack's high end
}

// Options of a run.
type Options struct {
	Entry bool   // run to the program's entry point first: nothing has been called there
	Every int    // visit each n-th instruction, at least 1
	Max   int    // visits at most; the program is killed then
	From  string // visit only while this file's code is on the stack; "" = always
}

// Run steps through a program and calls visit. The program's output is dropped.
func Run(cmd *exec.Cmd, o Options, visit func(*Point)) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	cmd.Env = []string{"LANG=C"}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	t := &tracee{pid: cmd.Process.Pid, o: o, visit: visit}
	t.shadow = &shadow{size: map[uint64]uint8{}, read: t.read}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(t.pid, &ws, 0, nil); err != nil || !ws.Stopped() {
		return fmt.Errorf("the program did not stop at its beginning: %v", err)
	}
	if o.Entry {
		if err := t.toEntry(); err != nil {
			return err
		}
	}
	return t.loop()
}

// atEntry is the tag of the entry point in the auxiliary vector.
const atEntry = 9

// toEntry lets the dynamic linker run, and stops the program at its entry point.
func (t *tracee) toEntry() error {
	aux, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", t.pid))
	if err != nil {
		return err
	}
	entry := uint64(0)
	for ; len(aux) >= 16; aux = aux[16:] {
		if binary.LittleEndian.Uint64(aux) == atEntry {
			entry = binary.LittleEndian.Uint64(aux[8:])
		}
	}
	var old [1]byte
	if !t.read(entry, old[:]) {
		return fmt.Errorf("no entry point at %#x", entry)
	}
	if _, err := syscall.PtracePokeText(t.pid, uintptr(entry), []byte{0xcc}); err != nil {
		return err
	}
	if err := syscall.PtraceCont(t.pid, 0); err != nil {
		return err
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(t.pid, &ws, 0, nil); err != nil || !ws.Stopped() ||
		ws.StopSignal() != syscall.SIGTRAP {
		return fmt.Errorf("the program did not come to its entry point: %v, %v", ws, err)
	}
	if _, err := syscall.PtracePokeText(t.pid, uintptr(entry), old[:]); err != nil {
		return err
	}
	var r syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(t.pid, &r); err != nil {
		return err
	}
	r.Rip = entry
	return syscall.PtraceSetRegs(t.pid, &r)
}

// tracee is the program while it is stepped.
type tracee struct {
	pid    int
	o      Options
	visit  func(*Point)
	shadow *shadow
	point  Point
	high   uint64 // end of the stack
	n      int    // instructions
	visits int
	buf    []byte
}

func (t *tracee) loop() error {
	now, err := t.regs()
	if err != nil {
		return err
	}
	t.remap()
	for t.visits < t.o.Max {
		if t.n%max(t.o.Every, 1) == 0 {
			t.show(&now)
		}
		mapped := t.maps(&now)
		if err := syscall.PtraceSingleStep(t.pid); err != nil {
			return err
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(t.pid, &ws, 0, nil); err != nil {
			return err
		}
		if ws.Exited() || ws.Signaled() {
			return nil
		}
		if sig := ws.StopSignal(); sig != syscall.SIGTRAP {
			return fmt.Errorf("stopped by %v at %#x after %d instructions", sig, now.IP, t.n)
		}
		next, err := t.regs()
		if err != nil {
			return err
		}
		t.n++
		t.shadow.step(&now, &next)
		if mapped {
			t.remap()
			t.shadow.forget()
		}
		now = next
	}
	return nil
}

func (t *tracee) regs() (out Regs, err error) {
	var r syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(t.pid, &r); err != nil {
		return out, err
	}
	return Regs{r.Rip, [16]uint64{r.Rax, r.Rcx, r.Rdx, r.Rbx, r.Rsp, r.Rbp, r.Rsi, r.Rdi, r.R8, r.R9, r.R10,
		r.R11, r.R12, r.R13, r.R14, r.R15}}, nil
}

// read reads the program's memory.
func (t *tracee) read(addr uint64, b []byte) bool {
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	n, err := unix.ProcessVMReadv(t.pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
	return err == nil && n == len(b)
}

// maps reports whether the instruction is a system call that maps or unmaps.
func (t *tracee) maps(r *Regs) bool {
	if nr := r.GPR[0]; nr != 9 && nr != 10 && nr != 11 {
		return false
	}
	var b [2]byte
	return t.read(r.IP, b[:]) && b == [2]byte{0x0f, 0x05}
}

func (t *tracee) remap() {
	t.point.Maps, _ = live.Maps(t.pid)
	t.point.Fresh = true
	for _, m := range t.point.Maps {
		if m.Path == "[stack]" {
			t.high = m.End
		}
	}
}

// redZone is how far below the stack pointer a function may keep things.
const redZone = 128

func (t *tracee) show(now *Regs) {
	if t.o.From != "" && !t.inside(now) {
		return
	}
	low := now.GPR[rsp] &^ 7
	if low >= t.high || t.high-low > 8<<20 {
		return
	}
	low -= redZone
	if n := int(t.high - low); n > cap(t.buf) {
		t.buf = make([]byte, n+1<<16)
	}
	t.buf = t.buf[:t.high-low]
	if !t.read(low, t.buf) {
		return
	}
	t.point.Regs, t.point.Calls, t.point.Low, t.point.Stack = *now, t.shadow.calls, low, t.buf
	t.visits++
	t.visit(&t.point)
	t.point.Fresh = false
}

// inside reports whether code of the wanted file is on the stack.
func (t *tracee) inside(now *Regs) bool {
	for _, m := range t.point.Maps {
		if m.Path != t.o.From {
			continue
		}
		if now.IP >= m.Start && now.IP < m.End {
			return true
		}
		for i := range t.shadow.calls {
			if ra := t.shadow.calls[i].Return; ra >= m.Start && ra < m.End {
				return true
			}
		}
	}
	return false
}

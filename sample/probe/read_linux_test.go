package probe

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// readTarget is testdata/reads.c, running.
type readTarget struct {
	*target
	t        *testing.T
	page     uint64 // a readable page, an unreadable one, and a readable one
	large    uint64
	filtered int // a thread that the kernel kills if it calls process_vm_readv
}

// Reads by the probe in a program without a CLR.
func TestReads(t *testing.T) {
	library, exe := built(t, "gcc"), compiled(t, "reads")
	for _, c := range []struct {
		name string
		test func(*testing.T, *readTarget)
	}{{"any address", readAny}, {"held", readHeld}, {"late", readLate}, {"stopped", readStopped},
		{"dead", readDead}, {"ending", readEnding}, {"closed", readClosed}} {
		t.Run(c.name, func(t *testing.T) { c.test(t, startReadTarget(t, library, exe)) })
	}
}

func startReadTarget(t *testing.T, library, exe string) *readTarget {
	t.Helper()
	r := &readTarget{target: startTarget(t, exe, library, 0, 0), t: t}
	must.True(t, r.lines.Scan(), "it says nothing")
	if _, err := fmt.Sscanf(r.lines.Text(), "%x %x %d", &r.page, &r.large, &r.filtered); err != nil {
		t.Fatalf("%q: %v", r.lines.Text(), err)
	}
	return r
}

// do makes the program do something, and waits until it is done.
func (r *readTarget) do(what string) {
	r.t.Helper()
	io.WriteString(r.in, what+"\n")
	must.True(r.t, r.lines.Scan() && r.lines.Text() == what, "it says %q, not %q", r.lines.Text(), what)
}

// threads choose the threads to ask.
type threads struct {
	pid  int
	list []Reader
}

func (c threads) Reader(n int) (a Reader, ok bool) {
	if n >= len(c.list) {
		return a, false
	}
	return c.list[n], true
}

func (c threads) Living() bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.pid))
	return len(b) > 0 && !bytes.Contains(b, []byte(") Z "))
}

func (r *readTarget) main() Reader {
	return Reader{TID: uint32(r.cmd.Process.Pid), Signal: int(unix.SIGURG)}
}

func (r *readTarget) memory(a ...Reader) *Memory {
	return r.f.Memory(threads{r.cmd.Process.Pid, a})
}

// pageOf returns the contents of the program's first page.
func pageOf() []byte {
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(i*7 + i/256)
	}
	return b
}

// readCase is a read of a program's memory with the expected answer.
type readCase struct {
	name string
	at   uint64
	size int
	want []byte
	says Answer
}

func (r *readTarget) cases() []readCase {
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(i % 251)
	}
	first, third := pageOf(), bytes.Repeat([]byte("z"), 4096)
	return []readCase{
		{"a word", r.page, 8, first[:8], Whole},
		{"within", r.page + 1234, 100, first[1234:1334], Whole},
		{"nothing", r.page, 0, nil, Whole},
		{"to the end", r.page + 4000, 96, first[4000:], Whole},
		{"into the hole", r.page + 4088, 16, first[4088:], Short},
		{"the whole page and more", r.page, 8192, first, Short},
		{"in the hole", r.page + 4096, 8, nil, Short},
		{"at the hole's end", r.page + 8191, 2, nil, Short},
		{"behind the hole", r.page + 8192, 4000, third[:4000], Whole},
		{"large", r.large, len(large), large, Whole},
		{"large, not aligned", r.large + 777, 2<<20 + 5, large[777 : 777+2<<20+5], Whole},
		{"null", 0, 8, nil, Short},
		{"near null", 4095, 8, nil, Short},
		{"no address", 1<<47 - 4096, 8, nil, Short},
		{"not canonical", 0x7fff_ffff_ffff_f000, 8, nil, Short},
		{"the kernel's", 0xffff_8000_0000_0000, 8, nil, Short},
		{"round the end", ^uint64(0) - 3, 8, nil, Short},
	}
}

// For any address, the probe returns all bytes up to the first one that cannot be read. The program continues
// normally, even if the read runs in a thread whose seccomp filter kills it for the call that reads memory.
func readAny(t *testing.T, r *readTarget) {
	t.Run("plain", func(t *testing.T) { r.readAll(t, r.main()) })
	t.Run("filtered", func(t *testing.T) {
		if r.filtered < 0 {
			t.Skip("SKIPPED-CHECK: there is no seccomp here")
		}
		r.readAll(t, Reader{uint32(r.filtered), int(unix.SIGURG), true})
	})
	r.do("c") // it is alive
	n := r.f.Stats().Strangers
	expect.True(t, n == 0, "%d signals for reads are taken for a stranger's", n)
}

// A read after Close touches nothing: the file may be unmapped.
func readClosed(t *testing.T, r *readTarget) {
	m, f := r.memory(r.main()), *r.f
	data := must.Get(unix.Mmap(-1, 0, len(f.data), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON))(t)
	f.data, m.f = data, &f
	m.Close()
	must.Do(t, f.Close())
	n, a := m.Read(make([]byte, 8), r.page)
	expect.True(t, n == 0 && a == Gone, "%d bytes, %v", n, a)
}

func (r *readTarget) readAll(t *testing.T, a Reader) {
	m := r.memory(a)
	for _, c := range r.cases() {
		got := make([]byte, c.size)
		n, says := m.Read(got, c.at)
		expect.True(t, n == len(c.want) && says == c.says && bytes.Equal(got[:n], c.want),
			"%s: %d bytes, answer %d, want %d, %d", c.name, n, says, len(c.want), c.says)
		expect.Equal(t, m.ReadAt(got, c.at), c.says == Whole, "%s: ReadAt says", c.name)
	}
	maps, says := m.Mappings()
	want, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", r.cmd.Process.Pid))
	expect.True(t, says == Whole && bytes.Equal(maps, want),
		"mappings: answer %d, %d bytes, want %d", says, len(maps), len(want))
	m.logCost(t, "of all sizes")
	expect.True(t, m.Stats.Unanswered == 0 && m.Stats.Asked >= m.Stats.Reads, "%+v", m.Stats)
	m.Stats = ReadStats{}
	for range 500 {
		m.ReadAt(make([]byte, 8), r.page)
	}
	m.logCost(t, "of words")
}

func (m *Memory) logCost(t *testing.T, what string) {
	s := m.Stats
	t.Logf("%d reads %s, %.1f us each, %.1f of them in the handler; %d signals", s.Reads, what,
		float64(s.Nanos)/float64(s.Reads)/1e3, float64(s.Copying)/float64(s.Reads)/1e3, s.Asked)
}

// Small reads of neighboring bytes cost one signal. A repeated read of a byte returns its current value; so
// does any read after Renew.
func readHeld(t *testing.T, r *readTarget) {
	m := r.memory(r.main())
	one := make([]byte, 1)
	for i := range uint64(1000) {
		must.True(t, m.ReadAt(one, r.page+2000+i) && one[0] == pageOf()[2000+i], "byte %d is %d", i, one[0])
	}
	expect.True(t, m.Stats.Reads == 1 && m.Stats.Held == 999, "%+v", m.Stats)
	for i := range 3 {
		m.ReadAt(one, r.page)
		expect.True(t, int(one[0]) == i, "read again: %d, it is %d now", one[0], i)
		r.do("c")
	}
	m.ReadAt(one, r.page+8)
	r.do("c")
	m.Renew()
	m.ReadAt(one, r.page)
	expect.True(t, one[0] == 4, "after Renew: %d", one[0])
	// Bytes that were copied before another read are not returned after it.
	for i, size := range []int{1, 5000} {
		m.Renew()
		m.ReadAt(one, r.page+16+uint64(i))
		r.do("c")
		m.ReadAt(make([]byte, size), r.large)
		m.ReadAt(one, r.page)
		expect.True(t, int(one[0]) == 5+i, "what is read later was copied before: %d", one[0])
	}
}

// A thread that takes its signal late finds its request withdrawn, and the next answer is the right one. The
// tool waits only up to its limit.
func readLate(t *testing.T, r *readTarget) {
	m := r.memory(r.main())
	m.limit = 60 * time.Millisecond
	got := make([]byte, 8)
	r.do("b")
	begin := time.Now()
	for i := range 3 {
		n, says := m.Read(got, r.page+8192)
		must.True(t, n == 0 && says == Unanswered, "read %d: %d bytes, answer %d", i, n, says)
	}
	t.Logf("three reads given up after %v", time.Since(begin))
	for i := range readRequests {
		expect.Equal(t, atomic.LoadUint32(&r.f.request(i).state)%readStates, readFree,
			"request %d is in state", i)
	}
	reads := m.Stats.Reads
	r.do("u") // and it takes the pending signal
	m.limit = readLimit
	n, says := m.Read(got, r.page)
	expect.True(t, n == 8 && says == Whole && bytes.Equal(got, pageOf()[:8]) && m.Stats.Reads == reads+1,
		"afterwards: %d bytes %q, answer %d", n, got, says)
	// A thread that blocks the signal is skipped.
	r.do("b")
	m = r.memory(r.main(), Reader{uint32(r.filtered), int(unix.SIGURG), true})
	if n, says := m.Read(got, r.page); n != 8 || says != Whole || m.Stats.Asked != 2 {
		t.Errorf("by another thread: %d bytes, answer %d, %+v", n, says, m.Stats)
	}
}

// A stopped process does not answer, and later continues unaffected.
func readStopped(t *testing.T, r *readTarget) {
	m := r.memory(r.main())
	m.limit = 60 * time.Millisecond
	got := make([]byte, 8)
	unix.Kill(r.cmd.Process.Pid, unix.SIGSTOP)
	n, says := m.Read(got, r.page)
	expect.True(t, n == 0 && says == Unanswered, "stopped: %d bytes, answer %d", n, says)
	unix.Kill(r.cmd.Process.Pid, unix.SIGCONT)
	m.limit = readLimit
	if n, says := m.Read(got, r.page+8192); n != 8 || says != Whole || string(got) != "zzzzzzzz" {
		t.Errorf("continued: %d bytes, answer %d", n, says)
	}
}

// A probe that has left, a process without a usable thread, and a process that has ended are reported
// quickly.
func readDead(t *testing.T, r *readTarget) {
	got := make([]byte, 8)
	n, says := r.memory().Read(got, r.page)
	expect.True(t, n == 0 && says == Unanswered, "no thread: %d bytes, answer %d", n, says)
	n, says = r.memory(Reader{TID: uint32(os.Getpid()), Signal: int(unix.SIGURG)}).Read(got, r.page)
	expect.True(t, n == 0 && says == Unanswered, "no thread of its: %d bytes, answer %d", n, says)
	m := r.memory(r.main())
	r.f.End()
	if n, says := m.Read(got, r.page); n != 8 || says != Whole {
		t.Errorf("the thread that ends the recording answers before: %d bytes, answer %d", n, says)
	}
	m.Renew()
	m.limit = 60 * time.Millisecond
	if n, says := m.Read(got, r.page); n != 0 || says != Unanswered || !r.f.Left() {
		t.Errorf("the probe has left: %d bytes, answer %d", n, says)
	}
	r.do("c")
	r.cmd.Process.Kill()
	for begin := time.Now(); m.c.Living() && time.Since(begin) < 10*time.Second; {
		time.Sleep(time.Millisecond)
	}
	n, says = m.Read(got, r.page)
	expect.True(t, n == 0 && says == Gone, "killed: %d bytes, answer %d", n, says)
}

// A process ends during the reads: everything read before is right, then it is gone.
func readEnding(t *testing.T, r *readTarget) {
	m := r.memory(r.main())
	got, want := make([]byte, 4096), bytes.Repeat([]byte("z"), 4096)
	time.AfterFunc(30*time.Millisecond, func() { r.cmd.Process.Kill() })
	for reads := 0; ; reads++ {
		n, says := m.Read(got, r.page+8192)
		if says == Gone {
			t.Logf("%d reads", reads)
			break
		}
		if says == Unanswered || !bytes.Equal(got[:n], want[:n]) || says == Whole && n != 4096 {
			t.Fatalf("%d bytes, answer %d", n, says)
		}
	}
}

// Every field and constant of src/read.h equals that of this package.
func TestReadLayout(t *testing.T) {
	text := must.Get(os.ReadFile("src/read.h"))(t)
	typ := reflect.TypeFor[read]()
	all := regexp.MustCompile(`SW_AT\(sw_read, (\w+), (\d+)\)`).FindAllStringSubmatch(string(text), -1)
	for _, m := range all {
		if f, ok := typ.FieldByName(goName(m[1])); !ok || strconv.Itoa(int(f.Offset)) != m[2] {
			t.Errorf("%s is at %s in C, at %d here (there is one: %v)", m[1], m[2], f.Offset, ok)
		}
	}
	expect.True(t, len(all) == typ.NumField(),
		"%d fields are named in C, %d here", len(all), typ.NumField())
	for name, want := range map[string]int{"READS": readRequests, "READ_AT": readAt, "READ_SIZE": readSize,
		"READ_FREE": readFree, "READ_ASKED": readAsked,
		"READ_TAKEN": readTaken, "READ_DONE": readDone, "READ_STATES": readStates, "READ_MEMORY": readMemory,
		"READ_PIPED": readPiped, "READ_MAPPINGS": readMappings} {
		m := regexp.MustCompile(`SW_` + name + ` = (\d+)`).FindStringSubmatch(string(text))
		expect.True(t, m != nil && m[1] == strconv.Itoa(want), "%s is %v in C, %d here", name, m, want)
	}
	expect.True(t, strings.Contains(string(text), "SW_READ_ROOM = 1 << 20") && readRoom == 1<<20 &&
		strings.Contains(string(text), fmt.Sprintf("SW_READ_COOKIE = %#x", readCookie)),
		"the room or the cookie differ")
}

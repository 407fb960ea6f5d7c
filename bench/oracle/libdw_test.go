package oracle

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seedwalk/seedwalk/cfi"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// registers is the number of registers to compare: those of all columns, and some more.
const registers = 128

// rule is a rule as both sides are written for the comparison.
type rule struct {
	kind cfi.Kind // of libdw: never Unspecified
	reg  uint64
	off  int64
	ops  string // of an expression, as dwrows prints them
}

func (r rule) String() string {
	return strings.TrimSpace(fmt.Sprintf("%v r%d%+d %s", r.kind, r.reg, r.off, r.ops))
}

// answer is one line of dwrows.
type answer struct {
	addr, start, end uint64
	ra               uint64
	signal           bool
	cfa              rule
	regs             [registers]rule
	err              string
}

// Rows whose registers are all undefined, or all the same value.
var undefined, sameValue = all(cfi.Undefined), all(cfi.SameValue)

func all(kind cfi.Kind) (row [registers]rule) {
	for i := range row {
		row[i].kind = kind
	}
	return row
}

// parse reads a line of dwrows into a, which is overwritten.
func (a *answer) parse(line string) error {
	next := func() (w string) {
		w, line, _ = strings.Cut(line, " ")
		return w
	}
	var bad error
	number := func(s string, base int) uint64 {
		v, err := strconv.ParseUint(s, base, 64)
		if err != nil {
			bad = err
		}
		return v
	}
	a.err = ""
	a.addr = number(next(), 16)
	start := next()
	if start == "error" {
		a.err = line
		return bad
	}
	a.start, a.end = number(start, 16), number(next(), 16)
	a.ra, a.signal = number(next(), 10), next() == "1"
	var err error
	if a.cfa, err = parseRule(next(), true); err != nil {
		return err
	}
	fill, at := &undefined, uint64(0) // what registers from at on are if nothing is said of them
	for line != "" && bad == nil {
		n, text, _ := strings.Cut(next(), "=")
		i := number(n, 10)
		if i >= registers || i < at {
			return fmt.Errorf("register %s", n)
		}
		copy(a.regs[at:i], fill[at:i])
		at = i
		switch text {
		case "u":
			fill = &undefined
		case "s":
			fill = &sameValue
		default:
			if a.regs[i], err = parseRule(text, false); err != nil {
				return err
			}
			at++
		}
	}
	copy(a.regs[at:], fill[at:])
	return bad
}

func parseRule(s string, cfa bool) (r rule, err error) {
	if s == "" || s == "none" || strings.HasPrefix(s, "error") {
		return r, fmt.Errorf("libdw has no rule: %q", s)
	}
	arg := s[1:]
	switch s[0] {
	case 'o', 'v':
		r.kind = cfi.Offset
		if s[0] == 'v' {
			r.kind = cfi.ValOffset
		}
		r.off, err = strconv.ParseInt(arg, 10, 64)
	case 'r':
		r.kind = cfi.Register
		if i := strings.IndexAny(arg, "+-"); cfa && i > 0 {
			r.kind = cfi.RegisterOffset
			if r.off, err = strconv.ParseInt(arg[i:], 10, 64); err != nil {
				return r, err
			}
			arg = arg[:i]
		}
		r.reg, err = strconv.ParseUint(arg, 10, 64)
	case 'e':
		r.kind, r.ops = cfi.Expression, arg
	case 'w':
		r.kind, r.ops = cfi.ValExpression, arg
	default:
		err = fmt.Errorf("rule %q", s)
	}
	return r, err
}

// oracle is a running dwrows.
type oracle struct {
	cmd  *exec.Cmd
	in   *bufio.Writer
	pipe io.Closer
	out  *bufio.Scanner
	errs strings.Builder
	cies int
	fdes map[uint64]bool // offsets of the FDEs that libdw lists
}

// ask starts dwrows on a file and reads its list of records.
func ask(t *testing.T, program, path, section string, machine int) *oracle {
	t.Helper()
	o := &oracle{fdes: map[uint64]bool{}}
	o.cmd = exec.Command(program, path, section, strconv.Itoa(machine))
	in := must.Get(o.cmd.StdinPipe())(t)
	out := must.Get(o.cmd.StdoutPipe())(t)
	o.cmd.Stderr = &o.errs
	must.Do(t, o.cmd.Start())
	o.in, o.pipe, o.out = bufio.NewWriterSize(in, 1<<16), in, bufio.NewScanner(out)
	o.out.Buffer(make([]byte, 1<<16), 1<<20)
	t.Cleanup(func() { o.cmd.Process.Kill(); o.cmd.Wait() })
	for o.out.Scan() {
		f := strings.Fields(o.out.Text())
		switch {
		case len(f) == 2 && f[0] == "end" && f[1] == "0":
			return o
		case len(f) == 3 && f[0] == "record" && f[2] == "cie":
			o.cies++
		case len(f) == 3 && f[0] == "record" && f[2] == "fde":
			off := must.Get(strconv.ParseUint(f[1], 16, 64))(t)
			o.fdes[off] = true
		default:
			t.Fatalf("dwrows: %q", o.out.Text())
		}
	}
	o.cmd.Wait()
	t.Fatalf("dwrows %s: no list of records: %s", path, o.errs.String())
	return nil
}

// query asks for the row at addr.
func (o *oracle) query(addr uint64) {
	line := strconv.AppendUint(o.in.AvailableBuffer(), addr, 16)
	o.in.Write(append(line, '\n')) // a broken pipe shows as an answer that is missing
}

// close ends the input: the answers that are still missing come.
func (o *oracle) close() {
	o.in.Flush()
	o.pipe.Close()
}

// next reads the next answer.
func (o *oracle) next(a *answer) error {
	if !o.out.Scan() {
		return fmt.Errorf("an answer is missing: %v %s", o.out.Err(), o.errs.String())
	}
	return a.parse(o.out.Text())
}

var build struct {
	once sync.Once
	dir  string
	err  error
}

// dwrows compiles the C program, once for all tests.
func dwrows(t *testing.T) string {
	t.Helper()
	skipUnless(t, "cc", "elfutils/libdw.h")
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "dwrows"); build.err == nil {
			build.err = compile("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
				"-o", filepath.Join(build.dir, "dwrows"), "testdata/dwrows.c", "-ldw", "-lelf")
		}
	})
	must.Do(t, build.err)
	return filepath.Join(build.dir, "dwrows")
}

func compile(args ...string) error {
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("cc %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// skipUnless skips a test where there is no C compiler or one of its headers
// is missing.
func skipUnless(t *testing.T, compiler, header string) {
	t.Helper()
	needs.Command(t, compiler)
	cmd := exec.Command(compiler, "-E", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <" + header + ">\n")
	if cmd.Run() != nil {
		t.Skipf("SKIPPED-CHECK: no %s (libdw-dev): rows are not compared with libdw", header)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if build.dir != "" {
		os.RemoveAll(build.dir)
	}
	os.Exit(code)
}

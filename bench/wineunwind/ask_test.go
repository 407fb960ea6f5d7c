package wineunwind

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seedwalk/seedwalk/pe"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

const (
	wine64  = "/usr/lib/wine/wine64"
	mingwCC = "x86_64-w64-mingw32-gcc"
)

// wine runs the harness.
type wine struct {
	dir, script, harness string
	asked                int
}

// newWine compiles the harness and prepares the prefix, or skips.
func newWine(t *testing.T, dir string) *wine {
	if _, err := os.Stat(wine64); err != nil {
		t.Skipf("SKIPPED-CHECK: no Wine: run scripts/deps.sh windows: %v", err)
	}
	needs.Command(t, mingwCC)
	script := must.Get(filepath.Abs("../../scripts/wine.sh"))(t)
	must.Run(t, exec.Command(script, "prepare"))
	w := &wine{dir: dir, script: script, harness: filepath.Join(dir, "harness.exe")}
	mingwCompile(t, w.harness, "testdata/harness.c", "-O2")
	return w
}

func mingwCompile(t *testing.T, out, source string, flags ...string) {
	args := append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", out, source}, flags...)
	must.Run(t, exec.Command(mingwCC, args...))
}

// The harness's structures, in its order.
type (
	wireRegs struct {
		GPR [16]uint64
		XMM [10][2]uint64
	}
	wireHead   struct{ Count, Stack, Size uint64 }
	wireLoaded struct{ Image, Size uint64 }
	wirePoint  struct {
		RVA, Unused uint64
		Regs        wireRegs
	}
	wireAnswer struct {
		How, Begin     uint32
		RIP            uint64
		Regs           wireRegs
		Frame, Handler uint64
	}
)

// ask returns Wine's answers about an image, one per point.
func (w *wine) ask(t *testing.T, f *pe.File, pts []point) []answer {
	t.Helper()
	// The link has a name of its own: Wine prefers its own file for some DLLs.
	w.asked++
	link := filepath.Join(w.dir, fmt.Sprintf("image%d.dll", w.asked))
	must.Do(t, os.Symlink(f.Name(), link))
	out := must.Get(w.run(link, questions(pts)))(t)
	return must.Get(parse(out, f.SizeOfImage(), len(pts)))(t)
}

// run runs the harness. It reads and writes files: Wine's server outlives it and
// would hold the other end of a pipe.
func (w *wine) run(image string, questions []byte) ([]byte, error) {
	in, out, msg := filepath.Join(w.dir, "in"), filepath.Join(w.dir, "out"), filepath.Join(w.dir, "err")
	if err := os.WriteFile(in, questions, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `exec "$0" exec "$1" "$2" <"$3" >"$4" 2>"$5"`, w.script,
		w.harness, image, in, out, msg)
	if err := cmd.Run(); err != nil {
		why, _ := os.ReadFile(msg)
		return nil, fmt.Errorf("harness: %w: %s", err, strings.TrimSpace(string(why)))
	}
	return os.ReadFile(out)
}

// questions is the harness's input.
func questions(pts []point) []byte {
	stack := stackBytes()
	b, _ := binary.Append(nil, binary.LittleEndian, wireHead{uint64(len(pts)), stackBase, uint64(len(stack))})
	b = append(b, stack...)
	for i := range pts {
		q := wirePoint{RVA: uint64(pts[i].rva), Regs: wireRegs{GPR: pts[i].regs.GPR}}
		for k, x := range pts[i].regs.XMM {
			q.Regs.XMM[k] = x
		}
		b, _ = binary.Append(b, binary.LittleEndian, &q)
	}
	return b
}

// parse reads the harness's output.
func parse(b []byte, size uint32, n int) ([]answer, error) {
	var l wireLoaded
	k, err := binary.Decode(b, binary.LittleEndian, &l)
	if err != nil {
		return nil, fmt.Errorf("harness: no answers: %w", err)
	}
	if l.Size != uint64(size) {
		return nil, fmt.Errorf("harness: the image has %#x bytes, not %#x: another file was loaded",
			l.Size, size)
	}
	out := make([]answer, n)
	for i := range out {
		b = b[k:]
		var a wireAnswer
		if k, err = binary.Decode(b, binary.LittleEndian, &a); err != nil {
			return nil, fmt.Errorf("harness: %d answers of %d: %w", i, n, err)
		}
		out[i] = a.answer()
	}
	if len(b) != k {
		return nil, fmt.Errorf("harness: %d bytes after the last answer", len(b)-k)
	}
	return out, nil
}

func (a *wireAnswer) answer() answer {
	r := answer{how: how(a.How), begin: a.Begin, frame: a.Frame, handler: a.Handler}
	r.regs.RIP, r.regs.GPR, r.regs.Known = a.RIP, a.Regs.GPR, allKnown
	for i, x := range a.Regs.XMM {
		r.regs.XMM[i] = x
	}
	return r
}

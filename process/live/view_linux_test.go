package live

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// manyMappings adds n mappings to this process, none of them executable.
func manyMappings(t *testing.T, n int) {
	t.Helper()
	page := os.Getpagesize()
	region := must.Get(unix.Mmap(-1, 0, n*page, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON))(t)
	t.Cleanup(func() { unix.Munmap(region) })
	for i := 0; i < n; i += 2 {
		must.Do(t, unix.Mprotect(region[i*page:(i+1)*page], unix.PROT_NONE))
	}
}

// selected returns the wanted mappings in this process's current maps file.
func selected(t *testing.T, wanted func(*Mapping) bool) (out []Mapping) {
	t.Helper()
	all := must.Get(Maps(os.Getpid()))(t)
	v := NewView(os.Getpid())
	for i := range all {
		v.date(&all[i])
		if wanted(&all[i]) && all[i].Path != "[vsyscall]" {
			out = append(out, all[i])
		}
	}
	return out
}

// Queries for executable mappings and for those of files have the same results as the text. They cost one
// call per wanted mapping, however many others there are.
func TestViewLists(t *testing.T) {
	const others = 3000
	manyMappings(t, others)
	for _, plain := range []bool{false, true} {
		v := NewView(os.Getpid())
		defer v.Close()
		v.plain = plain
		for _, c := range []struct {
			name   string
			list   func() ([]Mapping, error)
			wanted func(*Mapping) bool
		}{
			{"executable", v.Executable, func(m *Mapping) bool { return m.Exec }},
			{"files", v.Files, func(m *Mapping) bool { return m.Inode != 0 }},
		} {
			before := v.Queries
			got, err := c.list()
			if v.plain && !plain {
				t.Skip("SKIPPED-CHECK: this kernel has no PROCMAP_QUERY")
			}
			got = slices.DeleteFunc(got, func(m Mapping) bool { return m.Path == "[vsyscall]" })
			if want := selected(t, c.wanted); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s, plain %v: %v, %d mappings, want %d\n%v\n%v", c.name, plain, err,
					len(got), len(want), got, want)
			}
			if n := v.Queries - before; !plain && n != uint64(len(got)+1) {
				t.Errorf("%s: %d queries for %d mappings among %d others", c.name, n, len(got), others)
			}
		}
		expect.True(t, plain == (v.Texts == 2) && plain == (v.Queries == 0),
			"plain %v: %d texts, %d queries", plain, v.Texts, v.Queries)
	}
}

// One address costs one query and no text. There is no mapping after, before, and between mappings.
func TestViewAt(t *testing.T) {
	v := NewView(os.Getpid())
	defer v.Close()
	all := selected(t, func(m *Mapping) bool { return m.Inode != 0 })
	for i := range all {
		for _, addr := range []uint64{all[i].Start, all[i].End - 1} {
			if got := v.At(addr); v.plain {
				t.Skip("SKIPPED-CHECK: this kernel has no PROCMAP_QUERY")
			} else if got == nil || *got != all[i] {
				t.Errorf("%#x: %+v, want %+v", addr, got, all[i])
			}
		}
		if i > 0 && all[i-1].End < all[i].Start {
			if got := v.At(all[i-1].End); got != nil && got.Start == all[i].Start {
				t.Errorf("%#x lies before %+v", all[i-1].End, got)
			}
		}
	}
	for _, addr := range []uint64{0, 1 << 47, 1<<64 - 1} {
		got := v.At(addr)
		expect.True(t, got == nil, "%#x: %+v", addr, got)
	}
	expect.True(t, v.Texts == 0 && v.Queries == uint64(2*len(all)+3)+v.between(all),
		"%d texts, %d queries", v.Texts, v.Queries)
}

// between returns how many mappings follow a hole.
func (v *View) between(all []Mapping) (n uint64) {
	for i := 1; i < len(all); i++ {
		if all[i-1].End < all[i].Start {
			n++
		}
	}
	return n
}

// A view follows its process through an exec, and fails at its end.
func TestViewOfEndedProcess(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read x; exec cat")
	in, err := cmd.StdinPipe()
	must.Do(t, err)
	out, err := cmd.StdoutPipe()
	must.Do(t, err)
	if err := cmd.Start(); err != nil {
		t.Skip("SKIPPED-CHECK: no sh")
	}
	v := NewView(cmd.Process.Pid)
	defer v.Close()
	before, err := v.Executable()
	must.True(t, err == nil && len(before) != 0, "%d mappings, %v", len(before), err)
	in.Write([]byte("x\ny\n"))
	_, err = out.Read(make([]byte, 2))
	must.Do(t, err)
	if after, err := v.Executable(); err != nil || len(after) == 0 || slices.Equal(before, after) {
		t.Errorf("after an exec: %d mappings, %v", len(after), err)
	}
	in.Close()
	cmd.Wait()
	left, err := v.Executable()
	expect.True(t, err != nil && len(left) == 0, "after the end: %d mappings, %v", len(left), err)
}

// A file that is overwritten in place keeps its inode. Its mapping still counts as a new one.
func TestViewOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plug.so")
	var seen []Mapping
	for i := range 2 {
		must.Do(t, os.WriteFile(path, make([]byte, 4096), 0o755))
		must.Do(t, os.Chtimes(path, time.Time{}, time.Unix(int64(1000+i), 5)))
		f := must.Get(os.Open(path))(t)
		b := must.Get(unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE))(t)
		f.Close()
		v := NewView(os.Getpid())
		all := must.Get(v.Executable())(t)
		v.Close()
		at := slices.IndexFunc(all, func(m Mapping) bool { return m.Path == path })
		must.Do(t, unix.Munmap(b))
		must.True(t, at >= 0, "the mapping is not listed")
		seen = append(seen, all[at])
	}
	expect.True(t, seen[0].Inode == seen[1].Inode && seen[0].Written == 1000e9+5 &&
		seen[1].Written == 1001e9+5, "%+v", seen)
}

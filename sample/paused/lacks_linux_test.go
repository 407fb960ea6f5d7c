package paused

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/seedwalk/seedwalk/clr/contract"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/elf"
	"github.com/seedwalk/seedwalk/process/live"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/unwind"
)

// holed is memory with a word of a stack, and without the byte at missing.
type holed struct {
	live.Memory
	word, missing uint64
}

const wordAt = 0x5550 // of holed.word; no process has memory there

func (m *holed) ReadAt(p []byte, addr uint64) bool { return m.ReadSome(p, addr) == len(p) }

func (m *holed) ReadSome(p []byte, addr uint64) int {
	if addr == wordAt {
		return copy(p, binary.LittleEndian.AppendUint64(nil, m.word))
	}
	n := m.Memory.ReadSome(p, addr)
	if m.missing >= addr && m.missing-addr < uint64(n) {
		n = int(m.missing - addr)
	}
	return n
}

// A thread in a helper of the runtime lacks what describes its caller. The word at sp is a return address, so
// that it may be the end of the caller's code.
func TestLacksCaller(t *testing.T) {
	pid := startTasks(t)
	l := must.Get(LookAtTasks(pid, nil))(t)
	mem := &holed{Memory: must.Get(live.OpenProcess(pid))(t)}
	p := New(context.Host(), mem, live.NewLoader(pid), must.Get(live.Maps(pid))(t))
	p.verifySoon()
	var m contract.Method
	for i := range l.Stacks {
		for k := range l.Stacks[i].Frames {
			f := &l.Stacks[i].Frames[k]
			if f.Kind != unwind.KindManaged || m.UnwindRVA != 0 && m.Kind == contract.JIT {
				continue
			}
			p.target.Tables.Find(f.IP-1, &m)
		}
	}
	must.True(t, m.Kind == contract.JIT && m.UnwindRVA != 0, "no compiled method: %+v", m)
	info := m.Base + uint64(m.UnwindRVA)
	for _, c := range []struct {
		name              string
		sp, word, missing uint64
		want              uint64
	}{
		{"unwind data of the caller", wordAt, m.End, info, info},
		{"a call in the middle", wordAt, m.Begin + 1, info, info},
		{"nothing is missing", wordAt, m.End, 0, 0},
		{"unwind data of another method", wordAt, m.Begin, info, 0},
		{"the word is no return address", wordAt, 0x1234, info, 0},
		{"no stack", wordAt + 0x1000, m.End, info, 0},
	} {
		mem.word, mem.missing = c.word, c.missing
		expect.Equal(t, p.lacksCaller(c.sp), c.want, c.name)
	}
}

// A frame in a module whose file is missing has the offset in that file.
func TestOffsetInLostFile(t *testing.T) {
	loader := live.NewLoader(0)
	loader.Image = func(*live.Mapping) (*elf.File, error) { return nil, os.ErrNotExist }
	lost := live.Mapping{Start: 0x7f0000001000, End: 0x7f0000002000, Offset: 0x3000, Exec: true,
		Path: "/lost.so"}
	p := New(context.Host(), must.Get(live.OpenProcess(os.Getpid()))(t), loader, []live.Mapping{lost})
	f := p.named(&merge.Frame{IP: lost.Start + 0x115, Module: int32(p.Modules().Find(lost.Start))})
	expect.True(t, f.Module == lost.Path && f.Offset == 0x3115, "%s+%#x", f.Module, f.Offset)
}

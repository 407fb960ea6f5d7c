package snap

import (
	"encoding/binary"
	"fmt"
	"path"
	"strings"

	"github.com/seedwalk/seedwalk/unwind/module"
)

// Flaws of the recorded truth, each as narrow as it is understood. All are in
// one program of AArch64, sig_O0, whose thread gets signals on purpose.
const (
	ghostProgram = "aarch64/sig_O0/"
	steppedOver  = "aarch64/sig_O0/0081"
)

// getpid is where getpid's code, or a linkage table's entry for it, lies in a
// module of that program: [lo, hi) of the module's own addresses.
var getpid = map[string][2]uint64{
	"libc.so.6": {0xba040, 0xba050}, // nop; mov x8, #172; svc #0; ret
	"sig_O0":    {0x7f0, 0x800},     // adrp; ldr; add; br
}

// DropGhosts removes the frames of finished calls of getpid: the tracker did
// not see the return that stands right behind the system call, and kept the
// call in its list. Such a frame returns behind a call of getpid and has the
// stack pointer of the frame before it, which is not in getpid. It says which
// were removed, one name each.
func (p *Program) DropGhosts(s *Snapshot) (ghosts []string, err error) {
	if !strings.HasPrefix(s.ID, ghostProgram) || len(s.Frames) == 0 {
		return nil, nil
	}
	t, err := p.Table(s)
	if err != nil {
		return nil, err
	}
	kept := s.Frames[:1:1]
	for _, f := range s.Frames[1:] {
		before := &kept[len(kept)-1]
		name, ok := callsGetpid(t, uint64(f.PC))
		if ok && f.Kind == "ret" && f.SP != nil && before.SP != nil && *f.SP == *before.SP &&
			!inGetpid(t, uint64(before.PC)) {
			ghosts = append(ghosts, name)
			continue
		}
		kept = append(kept, f)
	}
	s.Frames = kept
	return ghosts, nil
}

// callsGetpid names the place if the instruction before a return address calls
// getpid.
func callsGetpid(t *module.Table, ra uint64) (name string, ok bool) {
	i := t.Find(ra - 4)
	if i < 0 {
		return "", false
	}
	m := t.At(i)
	at := ra - 4 - m.Bias
	b := m.Bytes(ra-4, 4)
	if len(b) < 4 {
		return "", false
	}
	w := binary.LittleEndian.Uint32(b)
	target := at + uint64(int64(int32(w<<6)>>6)*4)
	r := getpid[path.Base(m.Path)]
	const bl = 0x25 // the upper six bits
	return fmt.Sprintf("getpid called at %s+%#x", path.Base(m.Path), at),
		w>>26 == bl && target >= r[0] && target < r[1]
}

func inGetpid(t *module.Table, pc uint64) bool {
	i := t.Find(pc)
	if i < 0 {
		return false
	}
	m := t.At(i)
	r := getpid[path.Base(m.Path)]
	return pc-m.Bias >= r[0] && pc-m.Bias < r[1]
}

// SteppedOver reports whether the record of frame i has a known flaw. A trap interrupted the
// frame, and the record has the trap's address. The trap's handler has already increased the
// pc in the ucontext by 4, and the thread will continue there. So the ucontext's pc is right.
func (s *Snapshot) SteppedOver(i int) bool {
	return s.ID == steppedOver && s.Frames[i].Kind == "sig"
}

package raw

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/stack/merge"
	"github.com/seedwalk/seedwalk/stack/seed"
	"github.com/seedwalk/seedwalk/unwind"
)

// Reader reads the output of a Writer.
type Reader struct {
	r      *bufio.Reader
	images []Image
	offset int64
	names  map[clr.FunctionID]string
}

// Names returns the methods named so far; complete once Next has returned io.EOF.
func (r *Reader) Names() map[clr.FunctionID]string { return r.names }

// NewReader checks the magic. The error of a file of another version names both
// versions.
func NewReader(r io.Reader) (*Reader, error) {
	br := bufio.NewReaderSize(r, 1<<20)
	got := make([]byte, len(magic))
	_, err := io.ReadFull(br, got)
	if v, ok := strings.CutPrefix(string(got), family); err == nil && ok && string(got) != magic {
		return nil, fmt.Errorf("raw samples: the file is of version %s, this program reads %s: record it again, or read it with the program that wrote it", v, magic[len(family):])
	}
	if err != nil || string(got) != magic {
		return nil, fmt.Errorf("raw samples: the file does not begin with %q; was it written by record --raw of this version?", magic)
	}
	return &Reader{r: br, offset: int64(len(magic)), names: map[clr.FunctionID]string{}}, nil
}

// Next returns the next sample, io.EOF at the end. A file truncated in a record, because its writer was
// killed, ends like a complete one.
func (r *Reader) Next() (*Sample, error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(r.r, head[:]); err != nil {
			return nil, io.EOF
		}
		size := binary.LittleEndian.Uint32(head[1:])
		if size > maxRecord {
			return nil, fmt.Errorf("raw samples: record of %d bytes at offset %d", size, r.offset)
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r.r, body); err != nil {
			return nil, io.EOF
		}
		at := r.offset
		r.offset += int64(len(head)) + int64(size)
		d := decoder{b: body}
		switch head[0] {
		case kindTable:
			r.images = d.images()
		case kindMethod:
			f := clr.FunctionID(d.word())
			r.names[f] = string(d.bytes())
		case kindSample:
			s := d.sample()
			s.Images = r.images
			if !d.bad {
				return s, nil
			}
		}
		if d.bad {
			return nil, fmt.Errorf("raw samples: malformed record %q at offset %d", head[0], at)
		}
	}
}

// decoder keeps its first error: after a short read, every value is 0 and bad is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) word() uint64 {
	if len(d.b) < 8 {
		d.bad, d.b = true, nil
		return 0
	}
	v := binary.LittleEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.word()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

// count reads a number of items of at least size bytes each.
func (d *decoder) count(size int) int {
	n := d.word()
	if n > uint64(len(d.b)/size) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) images() []Image {
	out := make([]Image, d.count(48))
	for i := range out {
		out[i] = Image{ID: uint32(d.word()), Start: d.word(), End: d.word(), Bias: d.word(),
			Path: string(d.bytes()), BuildID: string(d.bytes())}
	}
	return out
}

func (d *decoder) registers() (r context.Registers) {
	a := d.word()
	if a > uint64(context.ArchARM64) {
		d.bad, d.b = true, nil
		return r
	}
	switch r.Arch = context.Arch(a); r.Arch {
	case context.ArchAMD64:
		r.AMD64 = d.amd64()
	case context.ArchARM64:
		r.ARM64 = d.arm64()
	}
	return r
}

func (d *decoder) arm64() (r context.ARM64) {
	r.Known, r.PC, r.Sp = d.word(), d.word(), d.word()
	for i := range r.X {
		r.X[i] = d.word()
	}
	for i := range r.D {
		r.D[i] = d.word()
	}
	return r
}

func (d *decoder) amd64() (r context.AMD64) {
	r.Known, r.RIP = uint32(d.word()), d.word()
	for i := range r.GPR {
		r.GPR[i] = d.word()
	}
	if r.Known&xmmKnown == 0 {
		return r
	}
	for i := range r.XMM {
		r.XMM[i] = context.XMM{d.word(), d.word()}
	}
	return r
}

func (d *decoder) sample() *Sample {
	s := new(Sample)
	c := &s.Capture
	c.Thread = clr.Thread{ID: clr.ThreadID(d.word()), TID: d.word(), StackLow: d.word(), StackHigh: d.word()}
	c.Status = clr.CaptureStatus(d.word())
	c.Truncated, c.Full = d.word() != 0, d.word() != 0
	c.Result = clr.HRESULT(d.word())
	c.Regs = d.registers()
	if c.Seeded = d.word() != 0; c.Seeded {
		c.Seed = d.registers()
	}
	c.Stack.Addr = d.word()
	c.Stack.Data = d.bytes()
	c.Below.Addr = d.word()
	if below := d.bytes(); len(below) > 0 {
		c.Below.Data = below
	}
	c.Frames = make([]clr.SnapshotFrame, d.count(112))
	for i := range c.Frames {
		f := &c.Frames[i]
		f.Function, f.IP, f.SP, f.FP = clr.FunctionID(d.word()), d.word(), d.word(), d.word()
		for j := range f.Saved {
			f.Saved[j] = d.word()
		}
	}
	s.Result = merge.Result{Gap: merge.Gap(d.word()), Verdict: seed.Verdict(d.word()), Managed: int(d.word()), Hidden: int(d.word()), Doubtful: int(d.word())}
	s.Frames = make([]merge.Frame, d.count(72))
	for i := range s.Frames {
		s.Frames[i] = merge.Frame{IP: d.word(), SP: d.word(), FP: d.word(), Function: clr.FunctionID(d.word()),
			Module: int32(d.word()), Kind: unwind.Kind(d.word()), Trust: unwind.Trust(d.word()), Gap: merge.Gap(d.word()), Exact: d.word() != 0}
	}
	s.Result.N = len(s.Frames)
	return s
}

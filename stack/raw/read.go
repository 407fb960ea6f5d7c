package raw

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/internal/buf"
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
		d := decoder{buf.Reader{Data: body}}
		switch head[0] {
		case kindTable:
			r.images = d.images()
		case kindMethod:
			f := clr.FunctionID(d.U64())
			r.names[f] = string(d.bytes())
		case kindSample:
			s := d.sample()
			s.Images = r.images
			if d.OK() {
				return s, nil
			}
		}
		if !d.OK() {
			return nil, fmt.Errorf("raw samples: malformed record %q at offset %d", head[0], at)
		}
	}
}

type decoder struct{ buf.Reader }

// bytes reads a length and so many bytes.
func (d *decoder) bytes() []byte { return d.Bytes(d.U64()) }

func (d *decoder) images() []Image {
	out := make([]Image, d.Count(48))
	for i := range out {
		out[i] = Image{ID: uint32(d.U64()), Start: d.U64(), End: d.U64(), Bias: d.U64(),
			Path: string(d.bytes()), BuildID: string(d.bytes())}
	}
	return out
}

func (d *decoder) registers() (r context.Registers) {
	a := d.U64()
	if a > uint64(context.ArchARM64) {
		d.Fail(buf.FaultShort)
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
	r.Known, r.PC, r.Sp = d.U64(), d.U64(), d.U64()
	for i := range r.X {
		r.X[i] = d.U64()
	}
	for i := range r.D {
		r.D[i] = d.U64()
	}
	return r
}

func (d *decoder) amd64() (r context.AMD64) {
	r.Known, r.RIP = uint32(d.U64()), d.U64()
	for i := range r.GPR {
		r.GPR[i] = d.U64()
	}
	if r.Known&xmmKnown == 0 {
		return r
	}
	for i := range r.XMM {
		r.XMM[i] = context.XMM{d.U64(), d.U64()}
	}
	return r
}

func (d *decoder) sample() *Sample {
	s := new(Sample)
	c := &s.Capture
	c.Thread = clr.Thread{ID: clr.ThreadID(d.U64()), TID: d.U64(), StackLow: d.U64(), StackHigh: d.U64()}
	c.Status = clr.CaptureStatus(d.U64())
	c.Truncated, c.Full = d.U64() != 0, d.U64() != 0
	c.Result = clr.HRESULT(d.U64())
	c.Regs = d.registers()
	if c.Seeded = d.U64() != 0; c.Seeded {
		c.Seed = d.registers()
	}
	c.Stack.Addr = d.U64()
	c.Stack.Data = d.bytes()
	c.Below.Addr = d.U64()
	if below := d.bytes(); len(below) > 0 {
		c.Below.Data = below
	}
	c.Frames = make([]clr.SnapshotFrame, d.Count(112))
	for i := range c.Frames {
		f := &c.Frames[i]
		f.Function, f.IP, f.SP, f.FP = clr.FunctionID(d.U64()), d.U64(), d.U64(), d.U64()
		for j := range f.Saved {
			f.Saved[j] = d.U64()
		}
	}
	s.Result = merge.Result{Gap: merge.Gap(d.U64()), Verdict: seed.Verdict(d.U64()), Managed: int(d.U64()),
		Hidden: int(d.U64()), Doubtful: int(d.U64())}
	s.Frames = make([]merge.Frame, d.Count(72))
	for i := range s.Frames {
		s.Frames[i] = merge.Frame{IP: d.U64(), SP: d.U64(), FP: d.U64(), Function: clr.FunctionID(d.U64()),
			Module: int32(d.U64()), Kind: unwind.Kind(d.U64()), Trust: unwind.Trust(d.U64()),
			Gap: merge.Gap(d.U64()), Exact: d.U64() != 0}
	}
	s.Result.N = len(s.Frames)
	return s
}

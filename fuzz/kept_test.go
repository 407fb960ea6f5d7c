package fuzz

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/sample/probe"
)

// Sizes in a file of copies: the fuzzed part of the header, the start of the ring, one copy.
const keptHead, keptRing, keptCopy = 512, probe.FileSize - probe.RingSize, 768

// keptCopies is the header and the ring of a file of two copies: see sample/probe/layout.go.
func keptCopies() []byte {
	const head, arch, size, stackSize = 88, 372, 16, 44
	le := binary.LittleEndian
	b := make([]byte, keptHead+2*keptCopy)
	le.PutUint64(b, probe.Magic)
	le.PutUint32(b[8:], probe.Version)
	le.PutUint64(b[head:], 2*keptCopy)
	le.PutUint32(b[arch:], uint32(context.ArchAMD64))
	for at := uint64(0); at < 2*keptCopy; at += keptCopy {
		r := b[keptHead+at:]
		le.PutUint64(r, at|1)     // committed
		le.PutUint64(r[8:], at|2) // claimed
		le.PutUint32(r[size:], keptCopy)
		le.PutUint32(r[stackSize:], 64)
	}
	return b
}

// FuzzKept reads any bytes as a file of copies: no panic, and no more bytes and damaged parts than the file
// can have.
func FuzzKept(f *testing.F) {
	seed := keptCopies()
	f.Add(seed, uint32(probe.FileSize))
	f.Add(seed, uint32(keptRing+keptCopy+400))
	for _, at := range []int{0, 8, 88, 372, 512, 528, 556, 560, 584, 600} {
		b := slices.Clone(seed)
		binary.LittleEndian.PutUint32(b[at:], 0xfffffff0)
		f.Add(b, uint32(probe.FileSize))
	}
	if n, damage, _ := readCopies(seed, probe.FileSize); n != 128 || damage != 0 {
		f.Fatalf("the seed has %d bytes of copies and %d damaged parts", n, damage)
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint32) {
		bytes, damage, err := readCopies(in, size)
		if err == nil && (bytes > probe.FileSize || damage > probe.RingSize/64+2) {
			t.Fatalf("%d bytes of copies, %d damaged parts", bytes, damage)
		}
	})
}

var keptFile = make([]byte, probe.FileSize)

// readCopies reads a file of this size, and returns the number of bytes of its copies and of damaged parts.
func readCopies(in []byte, size uint32) (bytes, damage int, err error) {
	clear(keptFile)
	n := copy(keptFile[:keptHead], in)
	copy(keptFile[keptRing:], in[n:])
	k, err := probe.ReadKept(keptFile[:min(int(size), len(keptFile))])
	if err != nil {
		return 0, 0, err
	}
	k.Read(func(r *probe.Record) { bytes += len(r.Stack) + len(r.Payload) + len(r.Extra) + len(r.Below) })
	return bytes, len(k.Damage), nil
}

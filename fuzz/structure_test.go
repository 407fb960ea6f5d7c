package fuzz

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

// Structural mutation: a whole real file and a script of edits to it. An edit
// takes one of the fields that the file's own headers lead to (a count, an
// offset, a size, a record's length, an opcode) and puts a value into it that is
// at home in such files: a bound, another field's value, the size of the file,
// one bit more or less. So a fuzzer is deep in the readers from its first
// input, where random bytes are refused at the first magic number.

// field is a number in a file.
type field struct{ at, size int }

// whole is an undamaged file and what can be edited in it.
type whole struct {
	name   string
	data   []byte
	fields []field
}

// fieldList collects fields that lie in the file.
type fieldList struct {
	data []byte
	list []field
}

// add adds fields of the given sizes from at on.
func (l *fieldList) add(at int, sizes ...int) {
	for _, n := range sizes {
		if at >= 0 && n <= 8 && at <= len(l.data)-n {
			l.list = append(l.list, field{at, n})
		}
		at += n
	}
}

// every adds n fields of a size from at on.
func (l *fieldList) every(at, n, size int) {
	for i := range n {
		l.add(at+i*size, size)
	}
}

func (l *fieldList) u16(at int) int { return int(l.number(field{at, 2})) }
func (l *fieldList) u32(at int) int { return int(l.number(field{at, 4})) }
func (l *fieldList) u64(at int) int { return int(l.number(field{at, 8})) }

func (l *fieldList) number(f field) uint64 { return number(l.data, f) }

// number reads a field; one outside the data is 0.
func number(data []byte, f field) uint64 {
	var b [8]byte
	if f.at >= 0 && f.at <= len(data)-f.size {
		copy(b[:f.size], data[f.at:])
	}
	return binary.LittleEndian.Uint64(b[:])
}

// An edit of a script has editSize bytes: which field (two), how (one), which
// value (one) and the value itself (four).
const (
	editSize = 8
	maxEdits = 12
)

// edit runs a script on a copy of the file.
func (w *whole) edit(script []byte) []byte {
	out := slices.Clone(w.data)
	for n := 0; n < maxEdits && len(script) >= editSize; n++ {
		f := w.fields[int(binary.LittleEndian.Uint16(script))%len(w.fields)]
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], w.value(out, f, script[2], script[3], binary.LittleEndian.Uint32(script[4:])))
		copy(out[f.at:f.at+f.size], b[:])
		script = script[editSize:]
	}
	return out[:len(out):len(out)] // a read past the end is a panic
}

// value is what an edit puts in the place of a field.
func (w *whole) value(data []byte, f field, how, which uint8, v uint32) uint64 {
	old := number(data, f)
	switch how % 7 {
	case 0:
		return uint64(v)
	case 1:
		return old + uint64(int64(int32(v))>>16)
	case 2:
		return old ^ 1<<(which%uint8(8*f.size))
	case 3:
		bounds := [...]uint64{0, 1, 1<<64 - 1, 1 << 63, 1<<63 - 1, 1 << 31, 1<<31 - 1, 0xff, 0x80, 0xfff0, 0xfffffff0}
		return bounds[int(which)%len(bounds)]
	case 4:
		return number(data, w.fields[int(v)%len(w.fields)])
	case 5:
		return uint64(len(data)) + uint64(int64(int8(which)))
	}
	return old * uint64(which)
}

// scripts are seeds: each file whole, and each of its fields with a bound.
func scripts(files []*whole, add func(file uint8, script []byte)) {
	for i, w := range files {
		add(uint8(i), nil)
		for f := 0; f < len(w.fields); f += 1 + len(w.fields)/40 {
			script := binary.LittleEndian.AppendUint16(nil, uint16(f))
			add(uint8(i), append(script, 3, uint8(f), 0, 0, 0, 0))
		}
	}
}

// hostFile reads a file of this machine, nil if there is none of at most limit
// bytes.
func hostFile(path string, limit int64) []byte {
	if st, err := os.Stat(path); err != nil || st.Size() > limit {
		return nil
	}
	b, _ := os.ReadFile(path)
	return b
}

// hostFileAt is where numbers of the machine's own files begin: what a corpus
// says of the files below it is the same everywhere.
const hostFileAt = 128

// choose returns the file of a number: one of ours, or of this machine's.
func choose(ours, hosts []*whole, n uint8) *whole {
	if n >= hostFileAt && len(hosts) > 0 {
		return hosts[int(n-hostFileAt)%len(hosts)]
	}
	return ours[int(n)%len(ours)]
}

// TestFields: a layout that leads nowhere would leave a fuzzer with nothing to
// edit.
func TestFields(t *testing.T) {
	elves, _ := wholeELFs(t)
	images, _ := wholePEs(t)
	for _, w := range append(elves, images...) {
		if len(w.fields) < 60 {
			t.Errorf("%s: %d fields", w.name, len(w.fields))
		}
		if out := w.edit(binary.LittleEndian.AppendUint64(nil, 3<<16|2<<24)); len(out) != len(w.data) || slices.Equal(out, w.data) {
			t.Errorf("%s: an edit of one field changes nothing", w.name)
		}
	}
}

package probe

import (
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// keptFile is a file of three copies, of the threads 1, 2, and 3.
type keptFile struct {
	*bed
	data []byte
}

func newKept() *keptFile {
	words := make([]uint64, FileSize/8)
	k := &keptFile{newBed(0), unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), FileSize)}
	k.h = (*header)(unsafe.Pointer(&k.data[0]))
	*k.h = header{magic: Magic, version: Version, pid: 4711, arch: uint32(context.ArchAMD64), missed: 5}
	k.ring = k.data[beforeRing:]
	for tid := uint32(1); tid <= 3; tid++ {
		k.put(k.claim(some), tid, []byte("a stack"))
	}
	return k
}

// readKept returns the threads of the whole copies in b, and the damaged parts of b.
func readKept(b []byte) (tids []uint32, damage []Damage, err error) {
	k, err := ReadKept(b)
	if err != nil {
		return nil, nil, err
	}
	k.Read(func(r *Record) {
		if r.TID <= 3 && string(r.Stack) == "a stack" {
			tids = append(tids, r.TID)
		}
	})
	return tids, k.Damage, nil
}

// Each kind of damage is found where it is, and the copies around it are read.
func TestReadKept(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*keptFile) []byte
		tids   []uint32
		offset uint64
		text   string
	}{
		{"whole", func(k *keptFile) []byte { return k.data }, []uint32{1, 2, 3}, 0, ""},
		{"a claimed record without a size", func(k *keptFile) []byte {
			*k.at(some) = record{}
			return k.data
		}, []uint32{1, 3}, beforeRing + some, "768 bytes hold no copy"},
		{"a record without a claim at the end", func(k *keptFile) []byte {
			k.h.head += some
			return k.data
		}, []uint32{1, 2, 3}, 0, ""},
		{"not finished", func(k *keptFile) []byte { k.at(some).commit = 0; return k.data },
			[]uint32{1, 3}, beforeRing + some, "not finished"},
		{"a long stack", func(k *keptFile) []byte { k.at(some).stackSize = some; return k.data },
			[]uint32{1, 3}, beforeRing + some, "exceed its record"},
		{"a size that is no multiple", func(k *keptFile) []byte { k.at(some).size = some + 8; return k.data },
			[]uint32{1, 3}, beforeRing + some, "hold no copy"},
		{"a size beyond the file", func(k *keptFile) []byte { k.at(some).size = 1 << 31; return k.data },
			[]uint32{1, 3}, beforeRing + some, "hold no copy"},
		{"a size smaller than a record", func(k *keptFile) []byte { k.at(some).size = align; return k.data },
			[]uint32{1, 3}, beforeRing + some, "hold no copy"},
		{"an impossible end", func(k *keptFile) []byte { k.h.head = 1 << 40; return k.data },
			[]uint32{1, 2, 3}, uint64(unsafe.Offsetof(header{}.head)), "impossible"},
		{"an end within a record", func(k *keptFile) []byte { k.h.head -= 8; return k.data },
			[]uint32{1, 2, 3}, uint64(unsafe.Offsetof(header{}.head)), "impossible"},
		{"cut off within the second copy", func(k *keptFile) []byte { return k.data[:beforeRing+some+400] },
			[]uint32{1}, beforeRing + some + 400, "cut off"},
		{"cut off before the copies", func(k *keptFile) []byte { return k.data[:HeaderSize] },
			nil, HeaderSize, "cut off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tids, damage, err := readKept(c.damage(newKept()))
			must.Do(t, err)
			expect.True(t, slices.Equal(tids, c.tids), "copies of threads %v, want %v", tids, c.tids)
			if c.text == "" {
				must.Equal(t, len(damage), 0, "%v", damage)
			} else if len(damage) == 0 || damage[0].Offset != c.offset ||
				!strings.Contains(damage[0].What, c.text) || damage[0].Remedy == "" {
				t.Errorf("damage %v, want %q at %d", damage, c.text, c.offset)
			}
		})
	}
}

// A file with an unusable header is refused, with the offset and a remedy.
func TestReadKeptRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*keptFile) []byte
		want   string
	}{
		{"empty", func(*keptFile) []byte { return nil }, "offset 0: the file ends within its header"},
		{"cut header", func(k *keptFile) []byte { return k.data[:100] },
			"offset 100: the file ends within its header"},
		{"other file", func(k *keptFile) []byte { k.data[3]++; return k.data },
			"offset 0: this is not a file of copies"},
		{"other version", func(k *keptFile) []byte { k.h.version++; return k.data },
			"offset 8: the file has version 10, not 9"},
		{"other machine", func(k *keptFile) []byte { k.h.arch = 1 << 20; return k.data },
			"the architecture 1048576 is not known"},
		{"too long", func(k *keptFile) []byte { return append(k.data, 0) }, "the file has more than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := readKept(c.damage(newKept()))
			expect.True(t, err != nil && strings.Contains(err.Error(), c.want) &&
				strings.Contains(err.Error(), "; "), "%v, want %q and a remedy", err, c.want)
		})
	}
}

package pe

import (
	"encoding/binary"
	"testing"
)

// flat is an image whose RVAs are offsets.
type flat []byte

func (f flat) BytesAt(rva uint32, n int) ([]byte, bool) {
	if n < 0 || uint64(rva)+uint64(n) > uint64(len(f)) {
		return nil, false
	}
	return f[rva : int(rva)+n], true
}

func TestARM64Lookup(t *testing.T) {
	img := make(flat, 0x3008)
	put := func(at int, words ...uint32) {
		for i, w := range words {
			binary.LittleEndian.PutUint32(img[at+4*i:], w)
		}
	}
	put(0x2000, 4|1<<21|1<<22|1<<27, 0xe4e481e1) // 16 bytes long, E
	put(0x3000, 8|1<<21|1<<22|1<<27, 0xe4e481e1) // ends with the image
	pdata := make([]byte, 5*8)
	for i, e := range [5][2]uint32{{0x1000, 0x2000}, {0x1010, 1 | 4<<2}, {0x1100, 0x3000}, {0x1200, 0x3010}, {0x1300, 3}} {
		binary.LittleEndian.PutUint32(pdata[8*i:], e[0])
		binary.LittleEndian.PutUint32(pdata[8*i+4:], e[1])
	}
	for _, c := range []struct {
		name  string
		rva   uint32
		found bool
		begin uint32
		want  ARM64Reason
	}{
		{"before all", 0xfff, false, 0, ARM64OK},
		{"first", 0x1000, true, 0x1000, ARM64OK},
		{"its last byte", 0x100f, true, 0x1000, ARM64OK},
		{"packed", 0x1010, true, 0x1010, ARM64OK},
		{"behind it", 0x1020, false, 0x1010, ARM64OK},
		{"record at the image's end", 0x1104, true, 0x1100, ARM64OK},
		{"record past the image's end", 0x1204, true, 0x1200, ARM64BadRecord},
		{"reserved flag", 0x1304, true, 0x1300, ARM64BadFlag},
	} {
		var buf ARM64Buffer
		info, begin, found, fault := arm64Lookup(img, pdata, c.rva, &buf)
		if found != c.found || begin != c.begin || fault.Reason != c.want {
			t.Errorf("%s: found %v at %#x, %v, length %d", c.name, found, begin, fault.Reason, info.Length)
		}
	}
}

package symbol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand"
	"runtime"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

func pack(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := must.Get(xz.WriterConfig{DictCap: 1 << 20, BlockSize: 1 << 16}.NewWriter(&b))(t)
	w.Write(content)
	must.Do(t, w.Close())
	return b.Bytes()
}

func random(n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewSource(1))
	for i := range b {
		b[i] = byte(rng.Intn(4))
	}
	return b
}

func TestUnxz(t *testing.T) {
	want := random(300_000) // several blocks
	got, err := unxz(pack(t, want), 1<<20)
	must.True(t, err == nil && bytes.Equal(got, want), "%d bytes, %v", len(got), err)
}

func TestUnxzBounds(t *testing.T) {
	packed := pack(t, random(300_000))
	var xe *XZError
	_, err := unxz(packed, 299_999)
	expect.True(t, errors.As(err, &xe), "limit: %v", err)
	got, err := unxz(packed, 300_000)
	expect.True(t, err == nil && len(got) == 300_000, "at the limit: %v", err)
	for cut := 0; cut < len(packed); cut += 9973 {
		if got, err := unxz(packed[:cut], 1<<20); err == nil && len(got) != 300_000 {
			t.Fatalf("cut at %d: %d bytes and no error", cut, len(got))
		}
	}
}

// manyBlocks is a stream of n blocks of one byte, each with a dictionary of 64 MiB.
func manyBlocks(n int) []byte {
	header := []byte{2, 0, 0x21, 1, 28, 0, 0, 0}
	header = binary.LittleEndian.AppendUint32(header, crc32.ChecksumIEEE(header))
	block := append(header, 1, 0, 0, 'A', 0, 0, 0, 0)
	out := append([]byte("\xfd7zXZ\x00"), 0, 0, 0, 0, 0, 0)
	return append(append(out, bytes.Repeat(block, n)...), make([]byte, 32)...)
}

// TestUnxzManyBlocks: small blocks with large dictionaries cost no more than their bytes.
func TestUnxzManyBlocks(t *testing.T) {
	for blocks, want := range map[int]string{60: "", 40_000: "chunk count: more than"} {
		packed := manyBlocks(blocks)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := unxz(packed, maxDebugData)
		runtime.ReadMemStats(&after)
		var xe *XZError
		if want == "" && (err != nil || len(got) != blocks) ||
			want != "" && (!errors.As(err, &xe) || xe.What != want) {
			t.Errorf("%d blocks: %d bytes, %v", blocks, len(got), err)
		}
		used, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+64*len(packed))
		expect.True(t, used <= most,
			"%d blocks: %d bytes allocated for %d, at most %d are right", blocks, used, len(packed), most)
	}
}

// TestUnxzGrowth: content that would expand beyond the factor is refused before it is decompressed.
func TestUnxzGrowth(t *testing.T) {
	var xe *XZError
	_, err := unxz(pack(t, make([]byte, 64<<20)), maxDebugData)
	expect.True(t, errors.As(err, &xe) && xe.What == "size after decompression: more than", "%v", err)
}

func TestUnxzHugeDictionaryIsRefused(t *testing.T) {
	_, err := dictionary([]byte{0, 0x21, 1, 39, 0, 0, 0}, 12)
	var xe *XZError
	must.True(t, errors.As(err, &xe) && xe.What == "dictionary size" && xe.Value == 3<<30, "%v", err)
	n, err := dictionary([]byte{0, 0x21, 1, 22, 0, 0, 0}, 12)
	must.True(t, err == nil && n == 8<<20, "8 MiB: %d %v", n, err)
}

package symbol

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"

	"github.com/ulikunitz/xz"
)

func pack(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.WriterConfig{DictCap: 1 << 20, BlockSize: 1 << 16}.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func content(n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewSource(1))
	for i := range b {
		b[i] = byte(rng.Intn(4))
	}
	return b
}

func TestUnxz(t *testing.T) {
	want := content(300_000) // several blocks
	got, err := unxz(pack(t, want), 1<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestUnxzBounds(t *testing.T) {
	packed := pack(t, content(300_000))
	var xe *XZError
	if _, err := unxz(packed, 299_999); !errors.As(err, &xe) {
		t.Errorf("limit: %v", err)
	}
	if got, err := unxz(packed, 300_000); err != nil || len(got) != 300_000 {
		t.Errorf("at the limit: %v", err)
	}
	for cut := 0; cut < len(packed); cut += 9973 {
		if got, err := unxz(packed[:cut], 1<<20); err == nil && len(got) != 300_000 {
			t.Fatalf("cut at %d: %d bytes and no error", cut, len(got))
		}
	}
}

func TestUnxzHugeDictionaryIsRefused(t *testing.T) {
	_, err := dictionary([]byte{0, 0x21, 1, 39, 0, 0, 0}, 12)
	var xe *XZError
	if !errors.As(err, &xe) || xe.What != "dictionary size" || xe.Value != 3<<30 {
		t.Fatalf("%v", err)
	}
	if n, err := dictionary([]byte{0, 0x21, 1, 22, 0, 0, 0}, 12); err != nil || n != 8<<20 {
		t.Fatalf("8 MiB: %d %v", n, err)
	}
}

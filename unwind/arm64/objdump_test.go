package arm64

import (
	"encoding/binary"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/must"
	"github.com/seedwalk/seedwalk/testkit/needs"
)

// How objdump writes instructions that change SP.
var (
	movesSP  = regexp.MustCompile(`\[sp\], #(-?\d+)$|\[sp, #(-?\d+)\]!$`)
	rare     = regexp.MustCompile(`^(ld|st)z?2?g|^ldra`) // the emulator does not know SP after them
	changeSP = regexp.MustCompile(`\[sp\], x|^add[vps]*l\tsp,`)
)

// TestStackPointerObjdump compares the emulator's SP after random loads and stores at SP, and after the
// instructions that move SP by vector lengths, with what objdump's text says.
func TestStackPointerObjdump(t *testing.T) {
	objdump := needs.Command(t, "aarch64-linux-gnu-objdump")
	r := rand.New(rand.NewSource(1))
	var words []uint32
	var raw []byte
	for i := range 200_000 {
		w := r.Uint32()&^(15<<25|31<<5) | [4]uint32{4, 6, 12, 14}[i%4]<<25 | regSP<<5
		switch i % 16 {
		case 0:
			w = 0x04205000 | r.Uint32()&0xdf0fe0 | regSP // addvl, addpl, and others
		case 1:
			w = 0x0c800000 | r.Uint32()&0x417fffff&^(31<<5) | regSP<<5 // LD1 to ST4
		case 2:
			w = 0xd9200000 | r.Uint32()&0xdffc1f | regSP<<5 // memory tags
		case 3:
			w = 0xf8200400 | r.Uint32()&0xdff81f | regSP<<5 // ldraa, ldrab
		}
		words, raw = append(words, w), binary.LittleEndian.AppendUint32(raw, w)
	}
	path := filepath.Join(t.TempDir(), "code")
	must.Do(t, os.WriteFile(path, raw, 0o644))
	out := must.Get(exec.Command(objdump, "-D", "-z", "-b", "binary", "-m", "aarch64", path).Output())(t)
	moved := 0
	for line := range strings.Lines(string(out)) {
		part := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		at, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(part[0]), ":"), 16, 64)
		if err != nil || len(part) < 3 {
			continue
		}
		text, _, _ := strings.Cut(part[2], "  //")
		text = strings.TrimSpace(text)
		if strings.HasPrefix(text, ".inst") {
			continue
		}
		want := value64{sp0, knownValue}
		if m := movesSP.FindStringSubmatch(text); m != nil {
			by := must.Get(strconv.ParseInt(m[1]+m[2], 10, 64))(t)
			want.v += uint64(by)
			moved++
		} else if changeSP.MatchString(text) {
			want = value64{}
			moved++
		}
		var e emulator
		e.regs[regSP] = value64{sp0, knownValue}
		e.run(words[at/4], nil)
		if got := e.regs[regSP]; got != want && (got.kind == knownValue || !rare.MatchString(text)) {
			t.Errorf("%08x %s: SP is %+v, want %+v", words[at/4], text, got, want)
		}
	}
	must.True(t, moved > 10_000, "only %d instructions move SP", moved)
}

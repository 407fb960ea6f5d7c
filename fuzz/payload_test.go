package fuzz

import (
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/nettrace/clrevent"
)

// FuzzPayload reads any bytes as the payload of each event: no panic, no text that is
// longer than the bytes there are.
func FuzzPayload(f *testing.F) {
	f.Add(make([]byte, 64), uint32(2), true)
	f.Add([]byte{1, 0, 0, 0, 'a', 0, 'b', 0, 0, 0, 0xff}, uint32(0), false)
	f.Fuzz(func(t *testing.T, in []byte, version uint32, wide bool) {
		pointer := 4
		if wide {
			pointer = 8
		}
		clrevent.DecodeContention(in, version, pointer)
		clrevent.DecodeContentionStop(in, version)
		clrevent.DecodeWait(in, pointer)
		clrevent.DecodeThread(in)
		clrevent.DecodeRuntime(in)
		clrevent.DecodeSampled(in, pointer)
		method, _ := clrevent.DecodeMethod(in)
		module, _ := clrevent.DecodeModule(in)
		process, _ := clrevent.DecodeProcess(in)
		tick, _ := clrevent.DecodeTick(in, version, pointer)
		exception, _ := clrevent.DecodeException(in, pointer)
		for _, s := range []string{method.FullName(), module.IL, process.CommandLine, tick.Name, exception.Type, exception.Message} {
			if len(s) > 4*len(in)+8 {
				t.Fatalf("a text of %d bytes of %d", len(s), len(in))
			}
		}
	})
}

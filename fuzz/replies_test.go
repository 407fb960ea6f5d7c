package fuzz

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/seedwalk/seedwalk/eventpipe/diagnostics"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// reply is a connection to a runtime that has answered before it was asked.
type reply struct{ *bytes.Reader }

func (reply) Write(p []byte) (int, error) { return len(p), nil }
func (reply) Close() error                { return nil }

// answer is a message of the diagnostics server.
func answer(id uint8, body ...byte) []byte {
	m := []byte("DOTNET_IPC_V1\x00")
	m = binary.LittleEndian.AppendUint16(m, uint16(20+len(body)))
	return append(append(m, 0xff, id, 0, 0), body...)
}

// FuzzAnswer reads any bytes as a runtime's answer to each command: no panic, no
// text that is longer than the bytes there are.
func FuzzAnswer(f *testing.F) {
	empty := []byte{1, 0, 0, 0, 0}
	info := append(make([]byte, 4+8+16),
		append([]byte{3, 0, 0, 0, 'a', 0, 'b', 0, 0, 0}, bytes.Repeat(empty[1:], 5)...)...)
	for _, seed := range [][]byte{
		answer(0, 1, 2, 3),
		answer(0, info...),
		answer(0, make([]byte, 8)...),                    // a session's number
		answer(0xff, 0x84, 0x13, 0x13, 0x80),             // BadEncoding
		answer(0xff, 0x85, 0x13, 0x13, 0x80),             // UnknownCommand: the next older one is tried
		append(answer(0, 1, 0, 0, 0), "Nettrace\x14"...), // what follows an answer
	} {
		f.Add(seed)
		f.Add(seed[:len(seed)/2])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c := diagnostics.NewClient(1,
			func() (io.ReadWriteCloser, error) { return reply{bytes.NewReader(in)}, nil })
		if i, err := c.Info(); err == nil {
			for _, s := range []string{i.CommandLine, i.OS, i.Arch, i.Assembly, i.Version, i.PortableRID} {
				must.True(t, len(s) <= 4*len(in), "a text of %d bytes of %d", len(s), len(in))
			}
		}
		c.Resume()
		c.Attach(diagnostics.Profiler{Path: "/p"})
		if s, err := c.Collect(diagnostics.Config{}); err == nil {
			if rest, err := io.ReadAll(s); err != nil || len(rest) > len(in) {
				t.Fatalf("%d bytes behind an answer of %d: %v", len(rest), len(in), err)
			}
			s.Stop()
			s.Close()
		}
	})
}

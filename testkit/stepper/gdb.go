package stepper

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/seedwalk/seedwalk/context"
)

// gdb talks to the debugging server of qemu's user mode emulation, which steps
// programs of other architectures.
//
// Source: GDB manual, appendix E, "GDB Remote Serial Protocol".
type gdb struct {
	conn net.Conn
	in   *bufio.Reader

	quiet bool // answers are not acknowledged
}

// startQemu starts a program that stops before its first instruction.
func startQemu(dir string, program ...string) (*gdb, *exec.Cmd, error) {
	at := filepath.Join(dir, "gdb")
	cmd := exec.Command("qemu-aarch64", append([]string{"-g", at}, program...)...)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	var conn net.Conn
	var err error
	for range 400 {
		if conn, err = net.Dial("unix", at); err == nil {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, nil, err
	}
	g := &gdb{conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}
	answer, err := g.ask("QStartNoAckMode")
	g.quiet = answer == "OK"
	if err == nil { // single registers are read only by those who know the description
		_, err = g.ask("qXfer:features:read:target.xml:0,fff")
	}
	return g, cmd, err
}

// ask sends a packet and gives the answer's body.
func (g *gdb) ask(body string) (string, error) {
	sum := byte(0)
	for i := range len(body) {
		sum += body[i]
	}
	if _, err := fmt.Fprintf(g.conn, "$%s#%02x", body, sum); err != nil {
		return "", err
	}
	if _, err := g.in.ReadString('$'); err != nil { // acknowledgements come before it
		return "", err
	}
	answer, err := g.in.ReadString('#')
	if err != nil {
		return "", err
	}
	if _, err := g.in.Discard(2); err != nil {
		return "", err
	}
	if !g.quiet {
		_, err = g.conn.Write([]byte("+"))
	}
	return answer[:len(answer)-1], err
}

// step runs one instruction. It answers false when the program has ended.
func (g *gdb) step() (bool, error) {
	answer, err := g.ask("s")
	return err == nil && answer != "" && answer[0] == 'T', err
}

// until runs to an address.
func (g *gdb) until(addr uint64) error {
	for _, ask := range []string{"Z0,%x,4", "c", "z0,%x,4"} {
		if ask != "c" {
			ask = fmt.Sprintf(ask, addr)
		}
		answer, err := g.ask(ask)
		if err != nil || answer != "OK" && (answer == "" || answer[0] != 'T') {
			return fmt.Errorf("%s: %q, %v", ask, answer, err)
		}
	}
	return nil
}

// registers reads x0 to x30, SP and pc.
func (g *gdb) registers() (r context.ARM64, err error) {
	answer, err := g.ask("g")
	b, _ := hex.DecodeString(answer[:min(len(answer), 33*16)])
	if err != nil || len(b) < 33*8 {
		return r, fmt.Errorf("no registers: %q, %v", answer, err)
	}
	for i := range r.X {
		r.X[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	r.Sp, r.PC = binary.LittleEndian.Uint64(b[31*8:]), binary.LittleEndian.Uint64(b[32*8:])
	r.Known = 1<<31 - 1
	return r, nil
}

// vectors reads d8 to d15. qemu numbers v0 after the 34 registers of its core.
func (g *gdb) vectors(r *context.ARM64) error {
	for i := range r.D {
		answer, err := g.ask(fmt.Sprintf("p%x", 34+8+i))
		b, _ := hex.DecodeString(answer)
		if err != nil || len(b) < 8 {
			return fmt.Errorf("no v%d: %q, %v", 8+i, answer, err)
		}
		r.D[i] = binary.LittleEndian.Uint64(b)
	}
	r.Known |= 0xff << 32
	return nil
}

// memory reads n bytes.
func (g *gdb) memory(at uint64, n int) ([]byte, error) {
	var out []byte
	for len(out) < n {
		answer, err := g.ask(fmt.Sprintf("m%x,%x", at+uint64(len(out)), min(n-len(out), 1024)))
		b, bad := hex.DecodeString(answer)
		if err != nil || bad != nil || len(b) == 0 {
			return nil, fmt.Errorf("no memory at %#x: %q, %v", at, answer, err)
		}
		out = append(out, b...)
	}
	return out, nil
}

package inspect

import (
	"encoding/hex"
	"fmt"
	"strings"

	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
)

// arm64Reg names a register of an unwind code.
func arm64Reg(c *pearm64.Code, n uint8) string {
	switch {
	case c.Vector && c.Quad:
		return fmt.Sprintf("q%d", n)
	case c.Vector:
		return fmt.Sprintf("d%d", n)
	case n == 30:
		return "lr"
	}
	return fmt.Sprintf("x%d", n)
}

// ARM64CodeText formats a code with the prolog instruction that it describes.
func ARM64CodeText(c *pearm64.Code) string {
	name := c.Op.String()
	if c.Saves {
		return fmt.Sprintf("%-16s %s", name, arm64Store(c))
	}
	what := ""
	switch c.Op {
	case pearm64.AllocS, pearm64.AllocM, pearm64.AllocL:
		what = fmt.Sprintf("sub sp, sp, #%d", c.Off)
	case pearm64.SetFP:
		what = "mov x29, sp"
	case pearm64.AddFP:
		what = fmt.Sprintf("add x29, sp, #%d", c.Off)
	case pearm64.PACSignLR:
		what = "pacibsp"
	case pearm64.SaveNext:
		what = "the next pair too"
	case pearm64.EndC:
		what = "the prolog's own codes end, its host's follow"
	case pearm64.MachineFrame:
		what = "sp and pc saved by a trap"
	case pearm64.Context, pearm64.ECContext:
		what = "a whole CONTEXT on the stack"
	case pearm64.ClearUnwoundToCall:
		what = "the caller's pc is exact"
	}
	return strings.TrimRight(fmt.Sprintf("%-16s %s", name, what), " ")
}

func arm64Store(c *pearm64.Code) string {
	where := fmt.Sprintf("[sp, #%d]", c.Off)
	if c.Pre {
		where = fmt.Sprintf("[sp, #-%d]!", c.Off)
	}
	if c.Reg2 == pearm64.NoRegister {
		return fmt.Sprintf("str %s, %s", arm64Reg(c, c.Reg), where)
	}
	return fmt.Sprintf("stp %s, %s, %s", arm64Reg(c, c.Reg), arm64Reg(c, c.Reg2), where)
}

// ARM64Codes formats codes, one per line with its bytes. It stops at a code that cannot be decoded.
func ARM64Codes(codes []byte) []string {
	var out []string
	for i := 0; i < len(codes); {
		c, why := pearm64.DecodeCode(codes[i:])
		if why != pearm64.OK && c.Op != pearm64.Reserved && !why.Unsupported() {
			return append(out, fmt.Sprintf("%4d: %-8x %s", i, codes[i:min(i+5, len(codes))], why))
		}
		n := min(max(int(c.Size), 1), len(codes)-i)
		text := ARM64CodeText(&c)
		if why != pearm64.OK {
			text += ": " + why.String()
		}
		out = append(out, fmt.Sprintf("%4d: %-8s %s", i, hex.EncodeToString(codes[i:i+n]), text))
		i += n
	}
	return out
}

// ARM64Data describes the unwind information of one entry: its header, the
// codes of the prolog (and of an expanded packed word's epilog), the scopes.
func ARM64Data(info *pearm64.Info, data uint32) []string {
	var out []string
	if data&3 != 0 {
		p := &info.Packed
		out = append(out, fmt.Sprintf("packed word %08x: flag %d, RegF %d, RegI %d, H %s, CR %d (%s), frame %d bytes; expanded:",
			data, p.Flag, p.RegF, p.RegI, bit(p.H), p.CR, crText[p.CR&3], p.FrameSize))
	} else {
		out = append(out, fmt.Sprintf(".xdata at %#x: version %d, %d code words, X %s, E %s%s", data,
			info.Version, info.CodeWords, bit(info.X), bit(info.E), extended(info)))
	}
	out = append(out, ARM64Codes(info.Codes)...)
	switch {
	case info.Fragment:
		out = append(out, "fragment: no prolog and no epilog of its own")
	case info.E:
		out = append(out, fmt.Sprintf("one epilog, at the function's end, first code %d", info.Epilogs))
	}
	for k := range info.Scopes() {
		s := info.Scope(k)
		out = append(out, fmt.Sprintf("epilog at +%#x, first code %d", s.Start, s.Index))
	}
	if info.X {
		out = append(out, fmt.Sprintf("exception handler at %#x", info.Handler))
	}
	return out
}

var crText = [4]string{"lr not saved", "lr saved", "frame chain, signed lr", "frame chain"}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func extended(i *pearm64.Info) string {
	if i.Extended {
		return ", extended header"
	}
	return ""
}

// arm64Effect has the places of the caller's registers, according to the codes.
type arm64Effect struct {
	base  string // register the CFA counts from
	off   int64
	saved []arm64Saved
	sign  bool
	other string // a machine frame or a context gives everything
	exact bool
}

type arm64Saved struct {
	name, base string
	off        int64
}

// ARM64Effect runs codes symbolically. It returns the CFA and the places of the saved registers.
func ARM64Effect(codes []byte) (cfa, saved string) {
	e := arm64Effect{base: "sp"}
	next := 0
	for len(codes) > 0 && e.other == "" {
		c, why := pearm64.DecodeCode(codes)
		if why != pearm64.OK {
			return "?", why.String()
		}
		if c.Op == pearm64.End {
			break
		}
		if c.Op == pearm64.SaveNext {
			next++
		} else {
			e.undo(&c, next)
			next = 0
		}
		codes = codes[c.Size:]
	}
	return e.text()
}

func (e *arm64Effect) undo(c *pearm64.Code, next int) {
	switch {
	case c.Saves:
		e.restore(c, next)
	case c.Op == pearm64.AllocS || c.Op == pearm64.AllocM || c.Op == pearm64.AllocL:
		e.off += int64(c.Off)
	case c.Op == pearm64.SetFP || c.Op == pearm64.AddFP:
		e.base, e.off = "x29", -int64(c.Off)
	case c.Op == pearm64.PACSignLR:
		e.sign = true
	case c.Op == pearm64.ClearUnwoundToCall:
		e.exact = true
	case c.Op == pearm64.MachineFrame || c.Op == pearm64.Context || c.Op == pearm64.ECContext:
		e.other = fmt.Sprintf("%s at %s%+d", c.Op, e.base, e.off)
	}
}

func (e *arm64Effect) restore(c *pearm64.Code, next int) {
	at, size := e.off, int64(8)
	if c.Quad {
		size = 16
	}
	if !c.Pre {
		at += int64(c.Off)
	}
	e.saved = append(e.saved, arm64Saved{arm64Reg(c, c.Reg), e.base, at})
	if c.Reg2 != pearm64.NoRegister {
		e.saved = append(e.saved, arm64Saved{arm64Reg(c, c.Reg2), e.base, at + size})
		for i := range 2 * next {
			e.saved = append(e.saved,
				arm64Saved{arm64Reg(c, c.Reg2+uint8(i)+1), e.base, at + size*int64(i+2)})
		}
	}
	if c.Pre {
		e.off += int64(c.Off)
	}
}

func (e *arm64Effect) text() (cfa, saved string) {
	cfa = fmt.Sprintf("%s%+d", e.base, e.off)
	if e.other != "" {
		cfa = e.other
	}
	var parts []string
	lr := false
	for _, s := range e.saved {
		lr = lr || s.name == "lr"
		if s.base == e.base && e.other == "" {
			parts = append(parts, fmt.Sprintf("%s [cfa%+d]", s.name, s.off-e.off))
		} else {
			parts = append(parts, fmt.Sprintf("%s [%s%+d]", s.name, s.base, s.off))
		}
	}
	if !lr && e.other == "" {
		parts = append(parts, "return address in lr")
	}
	if e.sign {
		parts = append(parts, "ra signed")
	}
	if e.exact {
		parts = append(parts, "caller exact")
	}
	return cfa, strings.Join(parts, ", ")
}

package judge

import (
	"fmt"
	"slices"
	"strings"

	pearm64 "github.com/seedwalk/seedwalk/pe/arm64"
	"github.com/seedwalk/seedwalk/testkit/pevec"
)

// decodeObject compares our decoding of packed words with the output of llvm-readobj.
func (x *PE) decodeObject(t *Tally, v *pevec.Vector) error {
	if !v.ARM64() {
		return fmt.Errorf("%s: objects of %s: %w", v.ID, v.Arch, ErrFormat)
	}
	functions, err := v.LLVMLines()
	if err != nil {
		return err
	}
	for section, pdata := range v.Sections {
		if !strings.HasPrefix(section, ".pdata") {
			continue
		}
		if len(pdata) != pearm64.EntrySize*len(functions) {
			return fmt.Errorf("%s: %d bytes of %s for %d functions: %w", v.ID, len(pdata),
				section, len(functions), ErrFormat)
		}
		table := pearm64.New(pdata, nil)
		for k, lines := range functions {
			x.object(t, v.ID, table.Entry(k).Data, lines)
		}
	}
	return nil
}

func (x *PE) object(t *Tally, id string, word uint32, lines []string) {
	var buf pearm64.Buffer
	i, fault := pearm64.DecodePackedInfo(word, &buf)
	got := llvmFields(&i)
	for codes := i.Codes; len(codes) > 0; {
		c, reason := pearm64.DecodeCode(codes)
		if reason != pearm64.OK {
			break
		}
		got = append(got, llvmCode(&c))
		codes = codes[c.Size:]
		if c.Last() {
			break
		}
	}
	got = append(got, "]")
	want := llvmWant(lines)
	var values []Pair
	for k := range max(len(want), len(got)) {
		values = append(values, Pair{fmt.Sprint(k), nth(want, k), nth(got, k)})
	}
	verdict := right
	switch {
	case !fault.OK():
		verdict = refused
	case differ(values):
		verdict = wrong
	}
	x.r.count(t, verdict, func() Mismatch {
		return Mismatch{ID: id, Where: fmt.Sprintf("%s, word %08x", nth(lines, 0), word),
			Why: "fault " + fault.Reason.String(), Values: values}
	})
}

func nth(s []string, i int) string {
	if i < len(s) {
		return s[i]
	}
	return "-"
}

func llvmFields(i *pearm64.Info) []string {
	p := &i.Packed
	yes := map[bool]string{true: "Yes", false: "No"}
	return []string{"Fragment: " + yes[i.Fragment], fmt.Sprintf("FunctionLength: %d", p.Length),
		fmt.Sprintf("RegF: %d", p.RegF),
		fmt.Sprintf("RegI: %d", p.RegI), "HomedParameters: " + yes[p.H], fmt.Sprintf("CR: %d", p.CR),
		fmt.Sprintf("FrameSize: %d", p.FrameSize), "Prologue ["}
}

// llvmCode writes a code of a canonical prolog as llvm-readobj does.
func llvmCode(c *pearm64.Code) string {
	if !c.Saves {
		switch c.Op {
		case pearm64.SetFP:
			return "mov x29, sp"
		case pearm64.PACSignLR:
			return "pacibsp"
		case pearm64.Nop:
			return "home"
		case pearm64.End:
			return "end"
		}
		return fmt.Sprintf("sub sp, sp, #%d", c.Off)
	}
	where := fmt.Sprintf("[sp, #%d]", c.Off)
	if c.Pre {
		where = fmt.Sprintf("[sp, #-%d]!", c.Off)
	} else if c.Off == 0 && c.Op != pearm64.SaveFPLR {
		where = "[sp]"
	}
	if c.Reg2 == pearm64.NoRegister {
		return fmt.Sprintf("str %s, %s", llvmReg(c, c.Reg), where)
	}
	return fmt.Sprintf("stp %s, %s, %s", llvmReg(c, c.Reg), llvmReg(c, c.Reg2), where)
}

func llvmReg(c *pearm64.Code, r uint8) string {
	switch {
	case c.Vector:
		return fmt.Sprintf("d%d", r)
	case r == 30:
		return "lr"
	}
	return fmt.Sprintf("x%d", r)
}

// llvmWant converts lines of llvm-readobj to our form. llvm-readobj differs in two places. It
// prints RegI=1 with CR=1 as INVALID, although it is two instructions. It prints the homing store
// that allocates the save area as a store.
func llvmWant(lines []string) []string {
	var out []string
	for _, l := range lines[min(1, len(lines)):] {
		l = strings.TrimSpace(l)
		switch {
		case l == "INVALID!":
			out = append(out, "stp x19, lr, [sp]", "sub sp, sp, #16")
		case strings.HasPrefix(l, "stp x0, x1, [sp, #-"):
			out = append(out, "sub sp, sp, #64")
		case homes(l):
			out = append(out, "home")
		default:
			out = append(out, l)
		}
	}
	return out
}

func homes(l string) bool {
	return slices.ContainsFunc([]string{"stp x0, x1, ", "stp x2, x3, ", "stp x4, x5, ", "stp x6, x7, "},
		func(p string) bool { return strings.HasPrefix(l, p) })
}

package api

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// listed reads testdata/slots.txt: the slots of every interface by the interface's name.
func listed(t *testing.T) map[string]map[int]string {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/slots.txt"))(t)
	all, of := map[string]map[int]string{}, ""
	for l := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(l, "## "); ok {
			of = strings.TrimSpace(name)
			all[of] = map[int]string{}
		} else if l[0] != '#' {
			slot, method, _ := strings.Cut(strings.TrimSpace(l), " ")
			n := must.Get(strconv.Atoi(slot))(t)
			all[of][n] = method
		}
	}
	return all
}

// The tables have every method of every interface, at its slot, and no other.
func TestComplete(t *testing.T) {
	want, n := listed(t), 0
	check := func(of string, slot int, name string) {
		expect.True(t, want[of][slot] == name,
			"%s, slot %d: %q, corprof.idl has %q", of, slot, name, want[of][slot])
		delete(want[of], slot)
		n++
	}
	for _, m := range Load().Info {
		check(m.Interface, m.Slot, m.Name)
	}
	for _, c := range Load().Callbacks {
		check(c.Interface, c.Slot, c.Name)
	}
	for of, left := range want {
		for slot, name := range left {
			t.Errorf("%s, slot %d: %s has no row", of, slot, name)
		}
		expect.True(t, Load().IIDs[of] != "", "%s has no IID", of)
	}
	expect.Equal(t, n, 112+95, "rows")
}

// TestWhole: every row is complete, and a line below it explains what no column can.
func TestWhole(t *testing.T) {
	always := map[string]bool{"Initialize": true, "Shutdown": true, "InitializeForAttach": true,
		"ProfilerAttachComplete":  true,
		"ProfilerDetachSucceeded": true, "LoadAsNotificationOnly": true}
	for _, c := range Load().Callbacks {
		expect.Equal(t, c.By == nil, always[c.Name], "%s: delivered by %v", c.Name, c.By)
		if !c.Never() && c.Contract == "none" {
			t.Errorf("%s is issued and has no contract", c.Name)
		}
	}
	for _, m := range Load().Info {
		expect.Equal(t, m.Gate == Own, (len(m.own) > 0 && m.Gate != SyncGC),
			"%s: gate %s with %d rules of its own", m.Name, m.Gate, len(m.own))
		expect.Equal(t, m.GC == "unread", m.Version >= 13, "%s of %s: unread", m.Name, m.Interface)
		if m.Native == "kills" && len(m.Says) == 0 {
			t.Errorf("%s kills and does not say when", m.Name)
		}
	}
	for _, r := range Load().Results {
		expect.True(t, r.Says != "" && r.Do != "", "%s: says %q, do %q", r.Name, r.Says, r.Do)
	}
	for _, c := range slices.Concat(Load().Checks, Load().Topics) {
		expect.True(t, c.Says != "" && c.Do != "", "%s: says %q, do %q", c.Name, c.Says, c.Do)
	}
}

// The bits combine to the measured masks.
func TestMasks(t *testing.T) {
	var later, attach, attach10, notify, high [2]uint32
	for _, b := range Load().Bits {
		word := 0
		if b.High {
			word = 1
		}
		in := func(m *[2]uint32, is bool) {
			if is {
				m[word] |= b.Value
			}
		}
		in(&high, true)
		in(&later, b.Later)
		in(&attach, b.Attach)
		in(&notify, b.Notify)
		in(&attach10, b.Attach || valueIn(b.From, "attach", Net10, "no") == "yes")
	}
	for _, c := range []struct {
		name      string
		got, want [2]uint32
	}{
		{"all", high, [2]uint32{0xffffffff, 0xff}},
		{"changeable later, 9.0.5", later, [2]uint32{^uint32(0xeef8cc00), 0xf7}},
		{"attached, 9.0.5", attach, [2]uint32{0x100502fe, 0xf6}},
		{"attached, 10.0.9", attach10, [2]uint32{0x106502fe, 0xf6}},
		{"notification", notify, [2]uint32{0xb1e32b7f, 0xfe}},
	} {
		expect.Equal(t, c.got, c.want, c.name)
	}
}

func TestExpect(t *testing.T) {
	for _, c := range []struct {
		method string
		place  Place
		r      Release
		want   Answer
	}{
		{"GetThreadInfo", PInvoke, Net9, Refused},
		{"GetThreadInfo", NoTrigger, Net9, LetIn},
		{"EnumModules", NoTrigger, Net9, Refused},
		{"EnumModules", Owner, Net9, Refused},
		{"EnumModules", Other, Net9, LetIn},
		{"GetCodeInfo3", NoTrigger, Net9, Refused},
		{"GetCodeInfo3", NoTrigger, Net10, LetIn},
		{"DoStackSnapshot", NativeCall, Net9, LetIn},
		{"SetEnterLeaveFunctionHooks3", Triggers, Net9, OnlyInit},
		{"SetEnterLeaveFunctionHooks3", Init, Net9, LetIn},
		{"ForceGC", Triggers, Net10, Refused},
		{"BeginInprocDebugging", Init, Net10, NotHere},
	} {
		expect.Equal(t, Load().FindInfo(c.method).Expect(c.place, c.r), c.want,
			"%s from %s", c.method, c.place)
	}
}

func TestMayWait(t *testing.T) {
	for name, want := range map[string]bool{"ThreadDestroyed": true,
		"ThreadAssignedToOSThread": false, "ModuleLoadStarted": false,
		"ModuleLoadFinished": true, "ExceptionUnwindFunctionEnter": false, "FunctionUnloadStarted": false} {
		expect.Equal(t, Load().FindCallback(name).MayWait(), want, "%s: may wait", name)
	}
}

// TestParseRefuses: input that breaks the format in the heads of the files is refused, with its line.
func TestParseRefuses(t *testing.T) {
	const head = "interface I 1 28B5557D-3F3F-48B4-90B2-5F9EEA2F6C48\n"
	const good = head + "3 A async notrigger any none yes yes yes yes yes\n"
	for _, c := range []struct{ name, info, callbacks, bits, results, want string }{
		{"no interface", "3 A async notrigger any none yes yes yes yes yes\n", "", "",
			"", "info.txt:1: a row before"},
		{"short row", head + "3 A async\n", "", "", "", "info.txt:2: 3 columns"},
		{"unknown word", head + "3 A asinc notrigger any none yes yes yes yes yes\n", "", "", "",
			`"asinc" is no word of column "gate"`},
		{"first slot", head + "4 A async notrigger any none yes yes yes yes yes\n", "", "",
			"", "slot 4 comes after slot 2"},
		{"slot left out", good + "5 B async notrigger any none yes yes yes yes yes\n", "", "",
			"", "slot 5 comes after slot 3"},
		{"name twice", good + "4 A async notrigger any none yes yes yes yes yes\n",
			"", "", "", "A stands twice"},
		{"interface twice", good + head, "", "", "", "I stands twice"},
		{"locks under suspension", head + "3 A async notrigger any takes yes yes yes yes yes\n", "", "", "",
			"not callable with a thread suspended"},
		{"gate without trigger", head + "3 A sync+gc notrigger any takes yes yes yes no yes\n", "", "",
			"", `has the gate "sync+gc"`},
		{"line of no row", " says x\n", "", "", "", "belongs to no row"},
		{"unknown line", good + " sais x\n", "", "", "", "no line of a method"},
		{"empty line", good + " says\n", "", "", "", "says nothing"},
		{"unknown place", good + " own nowhere refused\n", "", "", "", "is no place"},
		{"unknown bit", good + " needs NO_BIT\n", "", "", "", "is no bit"},
		{"column that stays", good + " from 10.0 locks none\n", "", "", "", "does not change"},
		{"bad release", good + " from ten gate sync\n", "", "", "", "is no release"},
		{"seen and never issued", "", head + "3 A never none both yes yes\n", "", "",
			"never issued, and was seen"},
		{"two bits", "", "", "B low 3 yes yes yes\n", "", "not one bit"},
		{"bad value", "", "", "B low 100000000 yes yes yes\n", "", "no hexadecimal number"},
		{"result without name", "", "", "", "00000000\n", "1 columns"},
	} {
		_, err := Parse(c.info, c.callbacks, c.bits, c.results, "", "")
		expect.True(t, err != nil && strings.Contains(err.Error(), c.want),
			"%s: %v, want %q", c.name, err, c.want)
	}
	_, err := Parse(good, "", "", "", "", "")
	expect.True(t, err == nil, "a good table: %v", err)
}

// TestNamedResults: each HRESULT that package clr names has a row here with the same name. All values are
// tried, so that a new name cannot be forgotten.
func TestNamedResults(t *testing.T) {
	rows := map[uint32]string{}
	for _, r := range Load().Results {
		rows[r.Value] = r.Name
	}
	named := 0
	for _, facility := range []uint32{0x00000000, 0x80000000, 0x80004000,
		0x8000ff00, 0x80070000, 0x80131300} {
		for low := range uint32(0x100) {
			h := clr.HRESULT(facility + low)
			if name := h.String(); !strings.HasPrefix(name, "HRESULT ") {
				named++
				expect.True(t, rows[uint32(h)] == name,
					"%08X is %s in package clr; its row in results.txt has the name %q", uint32(h), name, rows[uint32(h)])
			}
		}
	}
	expect.True(t, named >= 15, "only %d names were met", named)
}

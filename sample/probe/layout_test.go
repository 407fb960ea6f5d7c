package probe

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/clr/tasks"
	"github.com/seedwalk/seedwalk/context"
	"github.com/seedwalk/seedwalk/testkit/expect"
	"github.com/seedwalk/seedwalk/testkit/must"
)

// goName returns the Go spelling of a field in C.
func goName(c string) string {
	parts := strings.Split(c, "_")
	for i := range parts[1:] {
		parts[i+1] = strings.ToUpper(parts[i+1][:1]) + parts[i+1][1:]
	}
	return strings.Join(parts, "")
}

// Every field of src/probe.h has the same offset in Go. The C compiler checks the SW_AT lines there.
func TestLayout(t *testing.T) {
	text := must.Get(os.ReadFile("src/probe.h"))(t)
	types := map[string]reflect.Type{"sw_header": reflect.TypeFor[header](),
		"sw_slot": reflect.TypeFor[slot](), "sw_record": reflect.TypeFor[record](),
		"sw_open": reflect.TypeFor[open](), "sw_waiter": reflect.TypeFor[waiter](),
		"sw_type": reflect.TypeFor[droppedType](), "sw_rule": reflect.TypeFor[rule]()}
	seen := 0
	for _, m := range regexp.MustCompile(`SW_AT\((sw_\w+), (\w+), (\d+)\)`).FindAllStringSubmatch(string(text), -1) {
		f, ok := types[m[1]].FieldByName(goName(m[2]))
		if at, _ := strconv.Atoi(m[3]); !ok || int(f.Offset) != at {
			t.Errorf("%s.%s is at %s in C, at %d here (there is one: %v)", m[1], m[2], m[3], f.Offset, ok)
		}
		seen++
	}
	named := 0
	for _, typ := range types {
		for f := range typ.Fields() {
			if f.Name != "_" {
				named++
			}
		}
	}
	expect.True(t, seen == named, "%d fields are named in C, %d here", seen, named)
}

// The constants of src/probe.h are those of this package.
func TestConstants(t *testing.T) {
	text := must.Get(os.ReadFile("src/probe.h"))(t)
	for name, want := range map[string]int{"VERSION": Version, "HEADER_SIZE": HeaderSize,
		"SLOTS": Slots, "SLOT_SIZE": SlotSize,
		"AMD64": int(context.ArchAMD64), "ARM64": int(context.ArchARM64), "ALIGN": align,
		"OP_SAMPLE": int(OpSample), "OP_ARM": int(OpArm), "OP_DISARM": int(OpDisarm),
		"OP_LEAVE": int(OpLeave), "OP_CLOCK": int(OpClock), "CLOCK": int(ClockHit),
		"NEAR": near, "CLOCK_BITS": clockBits, "CLOCK_FIRST": clockFirst,
		"ASKED": int(Asked), "TIMER": int(Timer), "ARMED": int(Armed), "FOREIGN": Foreign, "CUT": Cut,
		"PATCHED": Patched, "ON_ALT": OnAlt, "EVENT": int(Event), "LEARN": Learn,
		"WAITERS": Waiters, "WAITER_SIZE": waiterSize, "NESTED": nested, "START_PAYLOAD": startRoom,
		"MAX_PAYLOAD": MaxPayload, "TYPES": types, "TYPE_SIZE": typeSize, "TYPE_NAME": typeName,
		"OBJECTS": MaxPayload / 16, "RULE_START": int(tasks.RuleStart >> 32),
		"RULE_TEXT": int(tasks.RuleText >> 32), "RULE_TASK": int(tasks.RuleTask >> 32),
		"RULE_FRAME":   int(tasks.RuleFrame>>32) | ruleFrame>>32,
		"OBJECT_START": tasks.EntryStart, "OBJECT_NEXT": tasks.EntryNext, "OBJECT_NOVEL": tasks.EntryNovel,
		"OBJECT_THREAD": tasks.EntryThread, "OBJECT_TEXT": tasks.EntryText, "OBJECT_CUT": tasks.EntryCut,
		"OBJECT_MOVED": tasks.EntryMoved, "OBJECT_CHAINS": tasks.EntryChains, "WAITS": WaitEvents,
		"LOCKS": LockEvents, "ALLOC": AllocEvents, "EXCEPTION": ExceptionEvents} {
		m := regexp.MustCompile(`SW_` + name + ` = (\d+)`).FindStringSubmatch(string(text))
		expect.True(t, m != nil && m[1] == strconv.Itoa(want), "%s is %v in C, %d here", name, m, want)
	}
	for arch, f := range formats {
		name := map[context.Arch]string{context.ArchAMD64: "SW_AMD64", context.ArchARM64: "SW_ARM64"}[arch]
		if !strings.Contains(string(text),
			fmt.Sprintf("SW_ARCH = %s, SW_MAX_EXTRA = %d, SW_REGS = %d }", name, f.extra, f.regs)) {
			t.Errorf("records of %v are others in C", arch)
		}
	}
	expect.True(t, strings.Contains(string(text), "SW_RING_SIZE = 1 << 22") &&
		strings.Contains(string(text), "SW_RULES = 1 << "+strconv.Itoa(rulesLog)) && RingSize == 1<<22 &&
		strings.Contains(string(text), "SW_MAGIC 0x"+strconv.FormatUint(Magic, 16)),
		"the size of the ring, that of the rules, or the magic differs")
}

package api

import (
	"fmt"
	"strings"
)

// CTable returns capi/checked/src/table.h: what the checking proxy of the C library needs of each method.
func (t *Tables) CTable() string {
	var b strings.Builder
	b.WriteString("/* Written from the tables of clr/api by its tests (-update). Do not edit. */\n\n#define INFO_SLOTS(X)")
	for i := range t.Info {
		fmt.Fprintf(&b, "%sX(%d)", before(i), t.Info[i].Slot)
	}
	b.WriteString("\n\n#define CALLBACK_SLOTS(X)")
	for i := range t.Callbacks {
		fmt.Fprintf(&b, "%sX(%d)", before(i), t.Callbacks[i].Slot)
	}
	b.WriteString("\n")
	b.WriteString("\nstatic const struct info_row info_rows[] = {\n")
	for i := range t.Info {
		m := &t.Info[i]
		fmt.Fprintf(&b, "\t[%d] = {\"%s\", %s, %d, %#x, %s},\n", m.Slot, m.Name, cGate(m.Gate),
			m.Version, t.needed(m), flags(
				"GC", m.GC == "triggers", "NO_ATTACH", !m.Attach, "NO_NOTIFY", !m.Notify,
				"NO_THREAD", m.Thread == "no",
				"NO_OWNER", m.Runtime != "yes", "OWNER_HANGS",
				m.Runtime == "hangs", "KILLS", m.Native == "kills",
				"BECOMES", m.Native == "becomes",
				"CRASHES_IN_INIT", strings.Contains(m.skip[Init], "ends the process"), "OTHER_HANGS",
				strings.HasPrefix(m.skip[Other], "hangs"),
				"NOTRIGGER_REFUSES", m.own[NoTrigger]))
	}
	b.WriteString("};\n\nenum check {\n")
	for _, c := range t.Checks {
		fmt.Fprintf(&b, "\t%s,\n", cName(c.Name))
	}
	b.WriteString("\tCHECKS\n};\nstatic const struct check_row check_rows[CHECKS] = {\n")
	for _, c := range t.Checks {
		fmt.Fprintf(&b, "\t[%s] = {%q, %q, %q},\n", cName(c.Name), c.Name, c.Says, c.Do)
	}
	b.WriteString("};\n\nstatic const struct callback_row callback_rows[] = {\n")
	for i := range t.Callbacks {
		c := &t.Callbacks[i]
		objects := c.Seen == "cooperative" || c.Seen == "both" || c.Seen == "collecting"
		fmt.Fprintf(&b, "\t[%d] = {\"%s\", %s},\n", c.Slot, c.Name,
			flags("TRIGGERS", c.Scope == "triggers", "MAY_WAIT", c.MayWait(), "OBJECTS", objects))
	}
	b.WriteString("};\n\nstatic const struct mask_row mask_rows[] = {\n")
	for _, bit := range t.Bits {
		fmt.Fprintf(&b, "\t{\"%s\", %d, %#x, %s},\n", bit.Name, high(bit.High), bit.Value,
			flags("BIT_FIXED", !bit.Later && valueIn(bit.From, "later", Net10, "no") == "no",
				"NO_ATTACH", !bit.Attach && valueIn(bit.From, "attach", Net10, "no") == "no",
				"NO_NOTIFY", !bit.Notify))
	}
	b.WriteString("\t{0, 0, 0, 0}};\n\n/* The interfaces that the proxy knows. */\nstatic const uint8_t info_ids[][16] = {\n")
	t.cIDs(&b, "ICorProfilerInfo", t.Info[len(t.Info)-1].Version)
	b.WriteString("};\n\nstatic const uint8_t callback_ids[][16] = {\n")
	t.cIDs(&b, "ICorProfilerCallback", t.Callbacks[len(t.Callbacks)-1].Version)
	b.WriteString("};\n")
	return b.String()
}

func cName(name string) string { return "CHECK_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// needed returns the low bits of the event mask that the row of a method names. The method needs all of them,
// or one of them.
func (t *Tables) needed(m *Info) (bits uint32) {
	for _, name := range m.Needs {
		if b := t.FindBit(name); !b.High {
			bits |= b.Value
		}
	}
	return bits
}

// before returns the separator before entry i of a list in a macro. A line holds fifteen entries.
func before(i int) string {
	if i%15 == 0 {
		return " \\\n\t"
	}
	return " "
}

func high(is bool) int {
	if is {
		return 1
	}
	return 0
}

func cGate(g Gate) string {
	return map[Gate]string{Async: "ASYNC", Sync: "SYNC", SyncGC: "SYNC_GC",
		InitOnly: "INIT_ONLY", Own: "OWN", Stub: "STUB"}[g]
}

// flags joins the names whose conditions hold.
func flags(pairs ...any) string {
	var on []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1].(bool) {
			on = append(on, pairs[i].(string))
		}
	}
	if on == nil {
		return "0"
	}
	return strings.Join(on, " | ")
}

func (t *Tables) cIDs(b *strings.Builder, name string, versions int) {
	for v := 1; v <= versions; v++ {
		full := name
		if v > 1 {
			full = fmt.Sprint(name, v)
		}
		fmt.Fprintf(b, "\t{%s},\n", CGUID(t.IIDs[full]))
	}
}

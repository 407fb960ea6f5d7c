package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seedwalk/seedwalk/testkit/golden"
)

// Markdown returns docs/contracts.md.
func (t *Tables) Markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	t.writePlaces(&b)
	t.writeInfo(&b)
	t.writeCallbacks(&b)
	t.writeBits(&b)
	t.writeResults(&b)
	t.writeChecks(&b)
	return b.String()
}

const intro = `# The contracts of the profiling API

This page says where each method of ICorProfilerInfo 1 to 15 may be called, what it does to the process, and where the CLR calls each
method of ICorProfilerCallback 1 to 11. A test writes the page from the tables of package ` + "`clr/api`" + `. Package ` + "`sim/conform`" + `
compares the tables with real CLRs. ` + "`seedwalk rules NAME`" + ` shows one method, callback, HRESULT, or rule.

The *gate* of a method is a check that comes before the method reads its arguments. It refuses calls while the profiler detaches
(80131367), then calls of attached profilers (8013136F), then calls from the wrong place (80131363). It checks **managed threads only**: a
thread without a runtime Thread is always allowed, and so is a thread on which ForceGC or RequestReJIT succeeded.

| column | meaning |
|---|---|
| gate | **async**: anywhere. **sync**: on a managed thread inside a callback only. **sync+gc**: also not in a callback whose scope forbids a collection. **init**: inside Initialize. **own**: rules of its own, in the remarks. **stub**: E_NOTIMPL |
| collection | **triggers**: it may start a collection or wait for one. Hold no lock over it that a collection, a suspension, or a cooperative callback takes |
| native | on a thread without a runtime Thread. *becomes*: makes it a managed thread for good. **kills**: can end the process |
| thread suspended | while you hold a thread suspended. *tries*: it does not wait for the lock of the code tables. **no**: it can wait for a lock that this thread owns |
| runtime suspended | on the thread that called SuspendRuntime |

**unread** means that no source of the contract is available. The gate is measured.

`

func (t *Tables) writePlaces(b *strings.Builder) {
	b.WriteString("## Where calls come from\n\n| gate |")
	for _, p := range Places() {
		fmt.Fprintf(b, " %s |", p)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("---|", int(places)))
	for _, g := range []Gate{Async, Sync, SyncGC, InitOnly, Stub} {
		m := Info{Gate: g}
		fmt.Fprintf(b, "| %s |", g)
		for _, p := range Places() {
			fmt.Fprintf(b, " %s |", m.Expect(p, Net9))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	for _, p := range Places() {
		fmt.Fprintf(b, "- *%s*: %s\n", p, p.Describe())
	}
	b.WriteString("\n")
}

func (t *Tables) writeInfo(b *strings.Builder) {
	b.WriteString("## The info interface\n")
	last := ""
	for i := range t.Info {
		m := &t.Info[i]
		if m.Interface != last {
			last = m.Interface
			fmt.Fprintf(b, "\n### %s\n\n{%s}\n\n| slot | method | gate | collection | locks | attached | notification | native | thread suspended | runtime suspended | |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
				last, t.IIDs[last])
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", m.Slot, m.Name,
			m.gateText(), m.GC, m.locksText(), mark(m.Attach), mark(m.Notify),
			bold(m.Native, "kills", "becomes"), m.threadText(),
			bold(m.Runtime, "hangs", "refused"), m.remarks())
	}
	b.WriteString("\n")
}

// gateText returns the gate, with the releases in which it differs.
func (m *Info) gateText() string {
	s := string(m.Gate)
	for _, c := range m.From {
		s += fmt.Sprintf(" (%s)", c)
	}
	return s
}

func (m *Info) locksText() string {
	if m.Locks == "reader" {
		return "tries"
	}
	return m.Locks
}

func (m *Info) threadText() string {
	if m.Thread == "reader" {
		return "tries"
	}
	return bold(m.Thread, "no")
}

// remarks returns the lines below a method.
func (m *Info) remarks() string {
	var s []string
	if m.Needs != nil {
		s = append(s, "Needs "+strings.Join(m.Needs, ", ")+".")
	}
	s = append(s, m.Says...)
	if refused := m.OwnRefused(); refused != "" && m.Gate == Own {
		s = append(s, "Refused from: "+refused+".")
	}
	return strings.Join(s, " ")
}

func mark(yes bool) string {
	if yes {
		return "yes"
	}
	return "**no**"
}

// bold highlights the words in which.
func bold(s string, which ...string) string {
	for _, w := range which {
		if s == w {
			return "**" + s + "**"
		}
	}
	return s
}

func (t *Tables) writeCallbacks(b *strings.Builder) {
	b.WriteString("## The callbacks\n\nA callback that is not **preemptive** delays collections and suspensions: never wait in it, and take no lock that a sampler holds over\nSuspendRuntime. *seen* is the mode on .NET 9.0.5, and on 10.0.9 if it differs.\n")
	last := ""
	for i := range t.Callbacks {
		c := &t.Callbacks[i]
		if c.Interface != last {
			last = c.Interface
			fmt.Fprintf(b, "\n### %s\n\n{%s}\n\n| slot | method | scope | contract | seen | may wait | locks held | delivered by | attached | notification | |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
				last, t.IIDs[last])
		}
		if c.Never() {
			fmt.Fprintf(b, "| %d | %s | never issued | | | | | %s | %s | %s | %s |\n", c.Slot, c.Name,
				strings.Join(c.By, ", "), c.Attach, c.Notify, strings.Join(c.Says, " "))
			continue
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Slot, c.Name, c.Scope,
			c.Contract, c.seenText(), mark(c.MayWait()), c.Held,
			strings.Join(c.By, " or "), c.Attach, c.Notify, strings.Join(c.Says, " "))
	}
	b.WriteString("\n")
}

func (c *Callback) seenText() string {
	s := c.Seen
	for _, f := range c.From {
		s += fmt.Sprintf(" (%s)", f)
	}
	return s
}

func (t *Tables) writeBits(b *strings.Builder) {
	b.WriteString("## The event mask\n\nThe names lack their prefix COR_PRF_. *later*: a profiler that was loaded at startup may change the bit after Initialize.\n\n| bit | word | value | later | attached | notification | |\n|---|---|---|---|---|---|---|\n")
	for _, bit := range t.Bits {
		word := "low"
		if bit.High {
			word = "high"
		}
		says := append([]string{}, bit.Says...)
		for _, c := range bit.From {
			says = append(says, fmt.Sprintf("From %s: %s %s.", c.Release, c.Column, c.Value))
		}
		fmt.Fprintf(b, "| %s | %s | %#x | %s | %s | %s | %s |\n", bit.Name, word, bit.Value, mark(bit.Later),
			mark(bit.Attach), mark(bit.Notify), strings.Join(says, " "))
	}
	b.WriteString("\n")
}

func (t *Tables) writeResults(b *strings.Builder) {
	b.WriteString("## HRESULTs\n\n| value | name | what it means | what to do |\n|---|---|---|---|\n")
	for _, r := range t.Results {
		fmt.Fprintf(b, "| %08X | %s | %s | %s |\n", r.Value, r.Name, r.Says, r.Do)
	}
}

func (t *Tables) writeChecks(b *strings.Builder) {
	b.WriteString("\n## What the checking proxy reports\n\n| rule | what happens | what to do |\n|---|---|---|\n")
	for _, c := range t.Checks {
		fmt.Fprintf(b, "| %s | %s | %s |\n", c.Name, c.Says, c.Do)
	}
}

// The generated files match the tables.
func TestWrittenFilesAreCurrent(t *testing.T) {
	for path, want := range map[string]string{"../../docs/contracts.md": Load().Markdown(),
		"../../capi/checked/src/table.h": Load().CTable()} {
		golden.Check(t, path, want)
	}
}

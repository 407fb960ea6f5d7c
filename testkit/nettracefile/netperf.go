package nettracefile

// Versions 1 to 3. A number of a stack or of a description in an Event is that of Stacks or
// Metadata; the file has the stack itself and the description's offset.

// RuntimeGUID identifies the runtime's provider in version 1. Other providers are zero there.
var RuntimeGUID = [16]byte{0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e, 0x93, 0x1b,
	0xd9, 0xcc, 0x2e, 0xee, 0x27, 0xe4}

func (w *Writer) beginNetperf(description enc) *Writer {
	w.raw(20)
	w.out.WriteString("!FastSerialization.1")
	w.begin("Microsoft.DotNet.Runtime.EventPipeFile", uint32(w.Version), 0)
	w.raw(0) // the first row of the table at the end
	w.out.Write(description)
	return w
}

func (w *Writer) keepStacks(first uint32, stacks [][]uint64) *Writer {
	for i, s := range stacks {
		var b enc
		b.addrs(s, w.PointerSize)
		w.stacks[first+uint32(i)] = b
	}
	return w
}

func (w *Writer) describeNetperf(metas []Meta) *Writer {
	var events []Event
	for _, m := range metas {
		e := Event{Stack: m.ID, Payload: w.describe(&m)}
		if w.Version < 3 {
			var b enc
			if w.Version == 2 {
				b.wide(m.Provider)
			} else if m.Provider == "Microsoft-Windows-DotNETRuntime" {
				b = append(b, RuntimeGUID[:]...)
			} else {
				b = append(b, make([]byte, 16)...)
			}
			var details enc // the description of version 3, behind its number and provider
			if m.Name != "" {
				var skip enc
				skip.u32(m.ID)
				skip.wide(m.Provider)
				details = e.Payload[len(skip):]
			}
			b.u32(m.Event)
			b.u32(m.Version)
			b.u32(uint32(len(details)))
			e.Payload = append(b, details...)
		}
		events = append(events, e)
	}
	return w.netperf(events)
}

// netperf writes events. An event without Meta is a description, whose number is in Stack.
func (w *Writer) netperf(events []Event) *Writer {
	var block enc
	for _, e := range events {
		meta, stack := e.Meta, w.stacks[e.Stack]
		if meta == 0 {
			stack = nil
			w.offset[e.Stack] = uint32(w.out.Len())
		} else if w.Version < 3 {
			if at, ok := w.offset[meta]; ok {
				meta = at
			}
		}
		var b enc
		b.u32(meta)
		b.u32(uint32(e.Thread))
		b.u64(e.Time)
		b = append(append(b, e.Activity[:]...), e.Related[:]...)
		b.u32(uint32(len(e.Payload)))
		b = append(b, e.Payload...)
		b.u32(uint32(len(stack)))
		b = append(b, stack...)
		for w.Version == 3 && len(b)%4 != 0 {
			b = append(b, 0)
		}
		var size enc
		size.u32(uint32(len(b)))
		if w.Version < 3 {
			w.out.Write(append(size, b...))
		}
		block = append(append(block, size...), b...)
	}
	if w.Version == 3 {
		w.Block("EventBlock", block)
	}
	return w
}

package image

// canonical is the prolog of Microsoft's "ARM64 exception handling", "Packed
// unwind data".
func (p *planARM64) canonical() {
	ints, vectors, homes := p.sizes()
	save := align16(ints + vectors + homes)
	p.size = max(align16(int64(p.s.FrameSize)), save)
	if p.s.FramePointer {
		p.size = max(p.size, save+16)
		if p.size == save+512 {
			p.size += 16 // the epilog's ldp cannot move SP by 512
		}
	}
	p.add(p.lower(p.area(0), save)...)
	local := p.size - save
	if p.s.FramePointer && local <= 512 {
		p.add(savePair(x29, x30, local, true))
	} else {
		if local > 4080 {
			p.add(stepARM64{kind: stepAlloc, at: 4080})
			local -= 4080
		}
		p.add(allocSteps(local)...)
		if p.s.FramePointer {
			p.add(savePair(x29, x30, 0, false))
		}
	}
	if p.s.FramePointer {
		p.setFP(0)
	}
}

// recordFirst puts the frame record at the bottom of the saves.
func (p *planARM64) recordFirst() {
	ints, vectors, homes := p.sizes()
	record := int64(0)
	var s []stepARM64
	if p.s.FramePointer {
		record = 16
		s = append(s, savePair(x29, x30, 0, false))
	}
	save := align16(record + ints + vectors + homes)
	p.size = max(align16(int64(p.s.FrameSize)), save)
	first := save
	if p.size < 512 && p.s.Body%2 == 0 && (p.s.FramePointer || p.s.RegI > 1) { // one allocation for all
		first = p.size
	}
	s = p.lower(append(s, p.area(record)...), first)
	if p.s.FramePointer && p.s.EarlyFP {
		p.add(s[0])
		p.setFP(0)
		s = s[1:]
	}
	p.add(s...)
	if p.s.FramePointer && !p.s.EarlyFP {
		p.setFP(0)
	}
	p.add(allocSteps(p.size - first)...)
}

// recordLast puts the frame record at the top of the saves; at once allocates
// the whole frame first.
func (p *planARM64) recordLast(atOnce bool) {
	ints, vectors, homes := p.sizes()
	record := align16(ints + vectors + homes)
	save := record
	s := p.area(0)
	if p.s.FramePointer {
		save += 16
		s = append(s, savePair(x29, x30, record, false))
	}
	p.size = max(align16(int64(p.s.FrameSize)), save)
	if atOnce {
		p.add(allocSteps(p.size)...)
		p.add(s...)
	} else {
		p.add(p.lower(s, save)...)
	}
	if p.s.FramePointer {
		p.setFP(record)
	}
	if !atOnce {
		p.add(allocSteps(p.size - save)...)
	}
}

// split moves the vector registers' saves to the fragment, where SP is lower,
// as far as instructions reach.
func (p *planARM64) split() {
	var first []stepARM64
	below := int64(0) // allocated behind a step
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := p.steps[i]
		if s.kind == stepSave && s.vector && !s.pre && s.at+below <= 504 {
			s.at += below
			p.late = append([]stepARM64{s}, p.late...)
			continue
		}
		if s.kind == stepAlloc || s.pre {
			below += s.at
		}
		first = append([]stepARM64{s}, first...)
	}
	p.steps = first
}

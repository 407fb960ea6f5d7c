package export

import "time"

// withEvents is handMade with every kind of event.
func withEvents() *Profile {
	p := handMade()
	p.Stacks = append(p.Stacks,
		Stack{Thread: 1, Frames: []int32{4, 9}, Count: 3, Complete: true, Event: EventWait,
			Sum: 3_000_000_000, Longest: 2_500_000_000},
		Stack{Thread: 2, Frames: []int32{4, 9}, Count: 1, Complete: true, Event: EventWait, Monitor: true,
			Open: true, Sum: 900_000_000, Longest: 900_000_000},
		Stack{Thread: 1, Frames: []int32{3, 9}, Count: 2, Complete: true, Event: EventLock, Owner: 100,
			Sum: 700_000, Longest: 600_000},
		Stack{Thread: 0, Frames: []int32{4, 3, 2, 1, 0}, Count: 10, Complete: true, Event: EventAllocation,
			Type: "System.Byte[]", Sum: 1_024_000},
		Stack{Thread: 0, Frames: []int32{3, 2, 1, 0}, Count: 4, Gap: "no-info", Event: EventException,
			Type: "Demo.Fault", Message: "no such file"})
	p.Stats.Events = []EventStats{{Event: EventWait, Seen: 9, Count: 4, Complete: 4, Sum: 3_900_000_000,
		Longest: 2_500_000_000, Open: 1},
		{Event: EventLock, Seen: 2, Count: 2, Complete: 2, Sum: 700_000, Longest: 600_000},
		{Event: EventAllocation, Seen: 1300, Count: 10, Complete: 10, Sum: 1_024_000},
		{Event: EventException, Seen: 4, Count: 4}}
	p.Waits = []Wait{{Stack: 6, Start: p.Start, Nanos: 2_500_000_000},
		{Stack: 8, Start: p.Start.Add(time.Second), Nanos: 600_000}}
	return p
}

// accounted is handMade with all of the CPU time: samples in the kernel, time in the
// kernel that no sample locates, time without samples, and a weak stack.
func accounted() *Profile {
	p := handMade()
	p.Frames = append(p.Frames, Frame{Name: KernelTime, ModuleIndex: -1, Class: ClassKernel},
		Frame{Name: Kernel, ModuleIndex: -1, Class: ClassKernel},
		Frame{Name: NotSampled, ModuleIndex: -1, Class: ClassUnsampled},
		Frame{Name: "[short threads]", ModuleIndex: -1, Class: ClassUnsampled},
		Frame{Name: "[start-up]", ModuleIndex: -1, Class: ClassUnsampled},
		Frame{Name: "Demo.Rare.Run()", Module: "demo.dll", ModuleIndex: -1, Class: ClassManaged})
	p.Threads = append(p.Threads, Thread{0, "threads without samples"})
	p.Stacks = append(p.Stacks,
		Stack{Thread: 0, Frames: []int32{17, 3, 2, 1, 0}, Count: 30, WallNanos: 330_000_000,
			CPUNanos: 30_000_000, CPUCount: 3, Complete: true},
		Stack{Thread: 0, Frames: []int32{13, 4, 3, 2, 1, 0}, Count: 12, WallNanos: 120_000_000,
			CPUNanos: 120_000_000, CPUCount: 12, Complete: true},
		Stack{Thread: 0, Frames: []int32{12}, CPUNanos: 100_000_000, Complete: true},
		Stack{Thread: 3, Frames: []int32{15, 14}, CPUNanos: 400_000_000,
			WallNanos: 400_000_000, Complete: true},
		Stack{Thread: 3, Frames: []int32{16, 14}, CPUNanos: 50_000_000,
			WallNanos: 50_000_000, Complete: true})
	p.Stats.Samples, p.Stats.Complete = 1042, 992
	p.Stats.CPU = &CPUTime{Process: 5_950_000_000, Profile: 5_500_000_000, Kernel: 100_000_000,
		NotSampled: []int64{1: 400_000_000, 3: 50_000_000}}
	p.Stats.Clock = &Clock{Kind: ClockRandom, LateP90: 82_000, Hits: 1000, Rejected: 190}
	return p
}

// eventsOnly is withEvents without samples.
func eventsOnly() *Profile {
	p := withEvents()
	p.Stacks, p.Waits = p.Stacks[6:], nil
	p.Stats.Samples, p.Stats.Complete, p.Stats.Gaps = 0, 0, nil
	return p
}

// handMade is a small profile with one example of everything. It has all classes, a doubtful
// frame, a gap in the middle, and a stack cut at the root without a gap frame. It also has
// two frames at different addresses of one function, and a thread without a name.
func handMade() *Profile {
	return &Profile{
		Frames: []Frame{
			0: {Name: "_start", Module: "dotnet", ModuleIndex: 0, Addr: 0x401020, Class: ClassNative},
			1: {Name: "main", Module: "dotnet", ModuleIndex: 0, Addr: 0x401200, Class: ClassNative},
			2: {Name: "coreclr_execute_assembly", Module: "libcoreclr.so", ModuleIndex: 1,
				Addr: 0x7f0000001000, Class: ClassRuntime},
			3: {Name: "Demo.Program.Main(string[])", Module: "demo.dll",
				ModuleIndex: -1, Class: ClassManaged},
			4: {Name: "Demo.Fib.Compute(int)", Module: "demo.dll", ModuleIndex: -1, Class: ClassManaged},
			5: {Name: "IL_STUB_PInvoke", ModuleIndex: -1, Class: ClassStub},
			6: {Name: "native_work", Module: "libdemo.so", ModuleIndex: 2,
				Addr: 0x7f0000100010, Class: ClassNative},
			7: {Name: "native_work", Module: "libdemo.so", ModuleIndex: 2,
				Addr: 0x7f0000100020, Class: ClassNative},
			8: {Name: "no-info", ModuleIndex: -1, Class: ClassGap},
			9: {Name: "clone3", Module: "libc.so.6", ModuleIndex: 3,
				Addr: 0x7f0000200030, Class: ClassNative},
			10: {Name: "libdemo.so+0x9f", Module: "libdemo.so", ModuleIndex: 2, Addr: 0x7f000010009f,
				Class: ClassNative, Doubtful: true},
			11: {Name: "WKS::gc_heap::mark_object_simple(unsigned char**)", Module: "libcoreclr.so",
				ModuleIndex: 1, Addr: 0x7f0000002000, Class: ClassRuntime},
		},
		Modules: []Module{
			{Path: "/usr/bin/dotnet", BuildID: "aa01", Start: 0x400000, End: 0x410000},
			{Path: "/opt/dotnet/libcoreclr.so", BuildID: "bb02", Start: 0x7f0000000000, End: 0x7f0000080000},
			{Path: "/app/libdemo.so", Start: 0x7f0000100000, End: 0x7f0000110000, Offset: 0x1000},
			{Path: "/usr/lib/libc.so.6", BuildID: "cc03", Start: 0x7f0000200000,
				End: 0x7f0000300000, Offset: 0x28000},
		},
		Threads: []Thread{{100, "main"}, {101, ".NET TP Worker"}, {102, ""}},
		Stacks: []Stack{
			{Thread: 0, Frames: []int32{4, 4, 4, 3, 2, 1, 0}, Count: 500, WallNanos: 5_000_000_000,
				CPUNanos: 4_900_000_000, Complete: true},
			{Thread: 0, Frames: []int32{6, 5, 3, 2, 1, 0}, Count: 200, WallNanos: 2_000_000_000,
				CPUNanos: 100_000_000, Complete: true},
			{Thread: 0, Frames: []int32{7, 5, 3, 2, 1, 0}, Count: 100, WallNanos: 1_000_000_000,
				CPUNanos: 50_000_000, Complete: true},
			{Thread: 1, Frames: []int32{10, 5, 4, 9}, Count: 150, WallNanos: 1_500_000_000, Complete: true},
			{Thread: 1, Frames: []int32{4, 8, 9}, Count: 30, WallNanos: 300_000_000, Gap: "no-info"},
			{Thread: 2, Frames: []int32{11}, Count: 20, WallNanos: 200_000_000, CPUNanos: 200_000_000,
				Gap: "stack-larger-than-slot"},
		},
		Start:    time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Duration: 10 * time.Second,
		RateHz:   99,
		Command:  []string{"dotnet", "demo.dll"},
		Runtime:  ".NET 9.0.5",
		Stats: Stats{Samples: 1000, Complete: 950,
			Gaps:      map[string]int64{"no-info": 30, "stack-larger-than-slot": 20},
			Suspended: Quantiles{700, 1_234_567, 3_456_789, 12_345_678},
			Parts: []Part{{"context", Quantiles{700, 1_000_000, 3_000_000, 12_000_000}},
				{"own walk", Quantiles{700, 3000, 9000, 20_000}}},
			Tries: []Tries{{"found", "S_OK", 1200}, {"no-managed", "E_FAIL", 30}}, Retries: 12,
			Lost: 3, Notes: []string{"a note"}},
	}
}

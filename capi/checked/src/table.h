/* Written from the tables of clr/api by its tests (-update). Do not edit. */

#define INFO_SLOTS(X) \
	X(3) \
	X(4) \
	X(5) \
	X(6) \
	X(7) \
	X(8) \
	X(9) \
	X(10) \
	X(11) \
	X(12) \
	X(13) \
	X(14) \
	X(15) \
	X(16) \
	X(17) \
	X(18) \
	X(19) \
	X(20) \
	X(21) \
	X(22) \
	X(23) \
	X(24) \
	X(25) \
	X(26) \
	X(27) \
	X(28) \
	X(29) \
	X(30) \
	X(31) \
	X(32) \
	X(33) \
	X(34) \
	X(35) \
	X(36) \
	X(37) \
	X(38) \
	X(39) \
	X(40) \
	X(41) \
	X(42) \
	X(43) \
	X(44) \
	X(45) \
	X(46) \
	X(47) \
	X(48) \
	X(49) \
	X(50) \
	X(51) \
	X(52) \
	X(53) \
	X(54) \
	X(55) \
	X(56) \
	X(57) \
	X(58) \
	X(59) \
	X(60) \
	X(61) \
	X(62) \
	X(63) \
	X(64) \
	X(65) \
	X(66) \
	X(67) \
	X(68) \
	X(69) \
	X(70) \
	X(71) \
	X(72) \
	X(73) \
	X(74) \
	X(75) \
	X(76) \
	X(77) \
	X(78) \
	X(79) \
	X(80) \
	X(81) \
	X(82) \
	X(83) \
	X(84) \
	X(85) \
	X(86) \
	X(87) \
	X(88) \
	X(89) \
	X(90) \
	X(91) \
	X(92) \
	X(93) \
	X(94) \
	X(95) \
	X(96) \
	X(97) \
	X(98) \
	X(99) \
	X(100) \
	X(101) \
	X(102) \
	X(103) \
	X(104) \
	X(105) \
	X(106) \
	X(107) \
	X(108) \
	X(109) \
	X(110) \
	X(111) \
	X(112) \
	X(113) \
	X(114)

#define CALLBACK_SLOTS(X) \
	X(3) \
	X(4) \
	X(5) \
	X(6) \
	X(7) \
	X(8) \
	X(9) \
	X(10) \
	X(11) \
	X(12) \
	X(13) \
	X(14) \
	X(15) \
	X(16) \
	X(17) \
	X(18) \
	X(19) \
	X(20) \
	X(21) \
	X(22) \
	X(23) \
	X(24) \
	X(25) \
	X(26) \
	X(27) \
	X(28) \
	X(29) \
	X(30) \
	X(31) \
	X(32) \
	X(33) \
	X(34) \
	X(35) \
	X(36) \
	X(37) \
	X(38) \
	X(39) \
	X(40) \
	X(41) \
	X(42) \
	X(43) \
	X(44) \
	X(45) \
	X(46) \
	X(47) \
	X(48) \
	X(49) \
	X(50) \
	X(51) \
	X(52) \
	X(53) \
	X(54) \
	X(55) \
	X(56) \
	X(57) \
	X(58) \
	X(59) \
	X(60) \
	X(61) \
	X(62) \
	X(63) \
	X(64) \
	X(65) \
	X(66) \
	X(67) \
	X(68) \
	X(69) \
	X(70) \
	X(71) \
	X(72) \
	X(73) \
	X(74) \
	X(75) \
	X(76) \
	X(77) \
	X(78) \
	X(79) \
	X(80) \
	X(81) \
	X(82) \
	X(83) \
	X(84) \
	X(85) \
	X(86) \
	X(87) \
	X(88) \
	X(89) \
	X(90) \
	X(91) \
	X(92) \
	X(93) \
	X(94) \
	X(95) \
	X(96) \
	X(97)

static const struct info_row info_rows[] = {
	[3] = {"GetClassFromObject", SYNC, 1, 0x0, NO_THREAD},
	[4] = {"GetClassFromToken", SYNC_GC, 1, 0x0, GC | NO_THREAD | KILLS},
	[5] = {"GetCodeInfo", ASYNC, 1, 0x0, 0},
	[6] = {"GetEventMask", ASYNC, 1, 0x0, 0},
	[7] = {"GetFunctionFromIP", ASYNC, 1, 0x0, 0},
	[8] = {"GetFunctionFromToken", SYNC, 1, 0x0, NO_THREAD},
	[9] = {"GetHandleFromThread", SYNC, 1, 0x0, NO_THREAD},
	[10] = {"GetObjectSize", SYNC, 1, 0x0, NO_THREAD},
	[11] = {"IsArrayClass", ASYNC, 1, 0x0, 0},
	[12] = {"GetThreadInfo", SYNC, 1, 0x0, NO_THREAD},
	[13] = {"GetCurrentThreadID", ASYNC, 1, 0x0, 0},
	[14] = {"GetClassIDInfo", ASYNC, 1, 0x0, 0},
	[15] = {"GetFunctionInfo", ASYNC, 1, 0x0, 0},
	[16] = {"SetEventMask", ASYNC, 1, 0x0, 0},
	[17] = {"SetEnterLeaveFunctionHooks", INIT_ONLY, 1, 0x0, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[18] = {"SetFunctionIDMapper", ASYNC, 1, 0x0, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[19] = {"GetTokenAndMetaDataFromFunction", SYNC, 1, 0x0, NO_THREAD},
	[20] = {"GetModuleInfo", ASYNC, 1, 0x0, NO_THREAD},
	[21] = {"GetModuleMetaData", SYNC, 1, 0x0, NO_THREAD},
	[22] = {"GetILFunctionBody", ASYNC, 1, 0x0, NO_THREAD},
	[23] = {"GetILFunctionBodyAllocator", SYNC_GC, 1, 0x0, GC | NO_THREAD},
	[24] = {"SetILFunctionBody", SYNC_GC, 1, 0x0, GC | NO_NOTIFY | NO_THREAD},
	[25] = {"GetAppDomainInfo", SYNC_GC, 1, 0x0, GC | NO_THREAD},
	[26] = {"GetAssemblyInfo", SYNC, 1, 0x0, NO_THREAD},
	[27] = {"SetFunctionReJIT", STUB, 1, 0x0, 0},
	[28] = {"ForceGC", OWN, 1, 0x0, GC | NO_THREAD | NO_OWNER | OWNER_HANGS | BECOMES | OTHER_HANGS | NOTRIGGER_REFUSES},
	[29] = {"SetILInstrumentedCodeMap", SYNC_GC, 1, 0x0, GC | NO_THREAD},
	[30] = {"GetInprocInspectionInterface", STUB, 1, 0x0, 0},
	[31] = {"GetInprocInspectionIThisThread", STUB, 1, 0x0, 0},
	[32] = {"GetThreadContext", ASYNC, 1, 0x0, 0},
	[33] = {"BeginInprocDebugging", STUB, 1, 0x0, 0},
	[34] = {"EndInprocDebugging", STUB, 1, 0x0, 0},
	[35] = {"GetILToNativeMapping", SYNC, 1, 0x0, NO_THREAD},
	[36] = {"DoStackSnapshot", ASYNC, 2, 0x10000000, 0},
	[37] = {"SetEnterLeaveFunctionHooks2", INIT_ONLY, 2, 0x0, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[38] = {"GetFunctionInfo2", ASYNC, 2, 0x0, 0},
	[39] = {"GetStringLayout", SYNC, 2, 0x0, NO_THREAD},
	[40] = {"GetClassLayout", ASYNC, 2, 0x0, 0},
	[41] = {"GetClassIDInfo2", ASYNC, 2, 0x0, 0},
	[42] = {"GetCodeInfo2", ASYNC, 2, 0x0, 0},
	[43] = {"GetClassFromTokenAndTypeArgs", SYNC_GC, 2, 0x0, GC | NO_THREAD | KILLS},
	[44] = {"GetFunctionFromTokenAndTypeArgs", SYNC_GC, 2, 0x0, GC | NO_THREAD | KILLS},
	[45] = {"EnumModuleFrozenObjects", SYNC, 2, 0x0, NO_THREAD},
	[46] = {"GetArrayObjectInfo", SYNC, 2, 0x0, NO_THREAD},
	[47] = {"GetBoxClassLayout", SYNC, 2, 0x0, NO_THREAD},
	[48] = {"GetThreadAppDomain", ASYNC, 2, 0x0, 0},
	[49] = {"GetRVAStaticAddress", SYNC, 2, 0x0, NO_THREAD},
	[50] = {"GetAppDomainStaticAddress", SYNC, 2, 0x0, NO_THREAD},
	[51] = {"GetThreadStaticAddress", SYNC, 2, 0x0, NO_THREAD},
	[52] = {"GetContextStaticAddress", SYNC, 2, 0x0, NO_THREAD},
	[53] = {"GetStaticFieldInfo", SYNC, 2, 0x0, NO_THREAD},
	[54] = {"GetGenerationBounds", SYNC, 2, 0x80, NO_THREAD},
	[55] = {"GetObjectGeneration", SYNC, 2, 0x80, NO_THREAD | CRASHES_IN_INIT},
	[56] = {"GetNotifiedExceptionClauseInfo", SYNC, 2, 0x0, NO_ATTACH | NO_THREAD},
	[57] = {"EnumJITedFunctions", SYNC, 3, 0x0, NO_THREAD},
	[58] = {"RequestProfilerDetach", ASYNC, 3, 0x0, GC | NO_THREAD},
	[59] = {"SetFunctionIDMapper2", ASYNC, 3, 0x0, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[60] = {"GetStringLayout2", SYNC, 3, 0x0, NO_THREAD},
	[61] = {"SetEnterLeaveFunctionHooks3", INIT_ONLY, 3, 0x0, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[62] = {"SetEnterLeaveFunctionHooks3WithInfo", INIT_ONLY, 3, 0x0, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[63] = {"GetFunctionEnter3Info", SYNC, 3, 0xe000000, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[64] = {"GetFunctionLeave3Info", SYNC, 3, 0xe000000, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[65] = {"GetFunctionTailcall3Info", SYNC, 3, 0xe000000, NO_ATTACH | NO_NOTIFY | NO_THREAD},
	[66] = {"EnumModules", SYNC_GC, 3, 0x0, GC | NO_THREAD | NO_OWNER},
	[67] = {"GetRuntimeInformation", SYNC, 3, 0x0, NO_THREAD},
	[68] = {"GetThreadStaticAddress2", SYNC, 3, 0x0, NO_THREAD},
	[69] = {"GetAppDomainsContainingModule", SYNC_GC, 3, 0x0, GC | NO_THREAD | NO_OWNER},
	[70] = {"GetModuleInfo2", ASYNC, 3, 0x0, NO_THREAD},
	[71] = {"EnumThreads", SYNC, 4, 0x0, NO_THREAD},
	[72] = {"InitializeCurrentThread", SYNC, 4, 0x0, NO_THREAD},
	[73] = {"RequestReJIT", SYNC_GC, 4, 0x40000, GC | NO_NOTIFY | NO_THREAD | BECOMES},
	[74] = {"RequestRevert", SYNC_GC, 4, 0x40000, GC | NO_NOTIFY | NO_THREAD | BECOMES},
	[75] = {"GetCodeInfo3", SYNC_GC, 4, 0x0, GC | NO_THREAD},
	[76] = {"GetFunctionFromIP2", SYNC_GC, 4, 0x0, GC | NO_THREAD},
	[77] = {"GetReJITIDs", SYNC_GC, 4, 0x0, GC | NO_THREAD},
	[78] = {"GetILToNativeMapping2", SYNC, 4, 0x0, NO_THREAD},
	[79] = {"EnumJITedFunctions2", SYNC_GC, 4, 0x0, GC | NO_THREAD},
	[80] = {"GetObjectSize2", SYNC, 4, 0x0, NO_THREAD},
	[81] = {"GetEventMask2", ASYNC, 5, 0x0, 0},
	[82] = {"SetEventMask2", ASYNC, 5, 0x0, 0},
	[83] = {"EnumNgenModuleMethodsInliningThisMethod", SYNC_GC, 6, 0x0, GC | NO_ATTACH | NO_THREAD},
	[84] = {"ApplyMetaData", SYNC_GC, 7, 0x0, GC | NO_THREAD},
	[85] = {"GetInMemorySymbolsLength", SYNC, 7, 0x0, NO_THREAD},
	[86] = {"ReadInMemorySymbols", SYNC, 7, 0x0, NO_THREAD},
	[87] = {"IsFunctionDynamic", ASYNC, 8, 0x0, NO_THREAD},
	[88] = {"GetFunctionFromIP3", SYNC_GC, 8, 0x0, GC | NO_THREAD},
	[89] = {"GetDynamicFunctionInfo", ASYNC, 8, 0x0, NO_THREAD},
	[90] = {"GetNativeCodeStartAddresses", ASYNC, 9, 0x0, NO_THREAD},
	[91] = {"GetILToNativeMapping3", SYNC, 9, 0x0, NO_THREAD},
	[92] = {"GetCodeInfo4", SYNC_GC, 9, 0x0, GC | NO_THREAD},
	[93] = {"EnumerateObjectReferences", SYNC, 10, 0x0, NO_THREAD},
	[94] = {"IsFrozenObject", SYNC, 10, 0x0, NO_THREAD | CRASHES_IN_INIT},
	[95] = {"GetLOHObjectSizeThreshold", SYNC, 10, 0x0, NO_THREAD},
	[96] = {"RequestReJITWithInliners", SYNC_GC, 10, 0x40000, GC | NO_NOTIFY | NO_THREAD | BECOMES},
	[97] = {"SuspendRuntime", OWN, 10, 0x0, GC | NO_THREAD | OTHER_HANGS | NOTRIGGER_REFUSES},
	[98] = {"ResumeRuntime", OWN, 10, 0x0, GC | NO_THREAD | NOTRIGGER_REFUSES},
	[99] = {"GetEnvironmentVariable", ASYNC, 11, 0x0, NO_THREAD},
	[100] = {"SetEnvironmentVariable", ASYNC, 11, 0x0, NO_THREAD},
	[101] = {"EventPipeStartSession", ASYNC, 12, 0x0, GC | NO_THREAD},
	[102] = {"EventPipeAddProviderToSession", ASYNC, 12, 0x0, GC | NO_THREAD},
	[103] = {"EventPipeStopSession", ASYNC, 12, 0x0, GC | NO_THREAD | BECOMES | OTHER_HANGS},
	[104] = {"EventPipeCreateProvider", ASYNC, 12, 0x0, GC | NO_THREAD},
	[105] = {"EventPipeGetProviderInfo", ASYNC, 12, 0x0, NO_THREAD},
	[106] = {"EventPipeDefineEvent", ASYNC, 12, 0x0, GC | NO_THREAD},
	[107] = {"EventPipeWriteEvent", ASYNC, 12, 0x0, NO_THREAD},
	[108] = {"CreateHandle", SYNC, 13, 0x0, NO_THREAD},
	[109] = {"DestroyHandle", ASYNC, 13, 0x0, NO_THREAD},
	[110] = {"GetObjectIDFromHandle", ASYNC, 13, 0x0, NO_THREAD},
	[111] = {"EnumerateNonGCObjects", SYNC, 14, 0x0, NO_THREAD},
	[112] = {"GetNonGCHeapBounds", ASYNC, 14, 0x0, NO_THREAD},
	[113] = {"EventPipeCreateProvider2", ASYNC, 14, 0x0, NO_THREAD},
	[114] = {"EnumerateGCHeapObjects", OWN, 15, 0x0, NO_THREAD | OTHER_HANGS | NOTRIGGER_REFUSES},
};

enum check {
	CHECK_OUTSIDE_CALLBACK,
	CHECK_TRIGGERS_IN_NOTRIGGER,
	CHECK_TRIGGERS_WHILE_SUSPENDED,
	CHECK_INIT_ONLY,
	CHECK_NOT_IMPLEMENTED,
	CHECK_CRASHES_IN_INITIALIZE,
	CHECK_TOO_EARLY,
	CHECK_DETACHING,
	CHECK_ATTACHED,
	CHECK_NOTIFICATION,
	CHECK_TYPE_ON_NATIVE_THREAD,
	CHECK_MANAGED_SAMPLER,
	CHECK_SAMPLER_BECOMES_MANAGED,
	CHECK_LOCK_OF_SUSPENDED,
	CHECK_NESTED_SUSPENSION,
	CHECK_SUSPENDED_ELSEWHERE,
	CHECK_RESUME_WITHOUT_SUSPEND,
	CHECK_RESUME_ELSEWHERE,
	CHECK_HANGS_UNDER_SUSPENSION,
	CHECK_THREAD_STORE_LOCK,
	CHECK_LOCK_OVER_COLLECTION,
	CHECK_CALL_IN_SNAPSHOT,
	CHECK_UNSUSPENDED_WALK,
	CHECK_MASK_WITHOUT_SNAPSHOT,
	CHECK_SNAPSHOT_FLAGS,
	CHECK_NULL_POINTER,
	CHECK_THREAD_DESTROYED,
	CHECK_OBJECT_MOVES,
	CHECK_IMMUTABLE_BIT,
	CHECK_ATTACHED_BIT,
	CHECK_NOTIFICATION_BIT,
	CHECK_UNBALANCED,
	CHECK_CALLBACK_SUSPENDED,
	CHECK_LOCK_IN_SNAPSHOT,
	CHECK_LOCK_UNDER_SUSPENSION,
	CHECK_WAIT_IN_CALLBACK,
	CHECK_TWO_TARGETS,
	CHECK_RESUME_TWICE,
	CHECK_FRAME_INFO,
	CHECK_OWNER_ENDED,
	CHECK_SHUTDOWN_SUSPENDED,
	CHECK_COLLECT_IN_CALLBACK,
	CHECK_MONITOR_GC_LATE,
	CHECK_ENUMERATE_IN_COLLECTION,
	CHECK_LOCK_KEPT,
	CHECK_SEED_SIZE,
	CHECK_SEED_EMPTY,
	CHECK_AFTER_SHUTDOWN,
	CHECK_DESTROYED_WAITS,
	CHECK_CALLBACK_WAITS,
	CHECK_SUSPENSION_TOO_LONG,
	CHECK_STALE_MODULE,
	CHECK_STALE_CLASS,
	CHECK_STALE_FUNCTION,
	CHECK_STALE_ASSEMBLY,
	CHECK_STALE_DOMAIN,
	CHECK_STALE_HANDLE,
	CHECK_STALE_SESSION,
	CHECK_FUNCTION_ZERO,
	CHECK_NOT_A_THREAD_ID,
	CHECK_RESUME_IN_SNAPSHOT,
	CHECK_NESTED_SNAPSHOT,
	CHECK_RESUME_UNDER_WALK,
	CHECK_DESTROYED_IN_USE,
	CHECK_CALL_IN_SIGNAL,
	CHECK_OVER_RELEASED,
	CHECK_INTERFACE_NOT_ASKED,
	CHECK_DETACH_IMMUTABLE,
	CHECK_ELT_INFO,
	CHECK_ENDED_WITH_LOCK,
	CHECK_ENDED_WITH_SUSPENDED,
	CHECK_SUSPENDED_KEPT,
	CHECK_MISSING_BIT,
	CHECK_REFUSED,
	CHECKS
};
static const struct check_row check_rows[CHECKS] = {
	[CHECK_OUTSIDE_CALLBACK] = {"outside-callback", "A managed thread may call it inside a callback only: 80131363.", "Call it in a callback, or on a native thread of your own."},
	[CHECK_TRIGGERS_IN_NOTRIGGER] = {"triggers-in-notrigger", "It may start a collection where none may be: 80131363, and on a native thread of a server collection nothing refuses it.", "Note what you need, and call it later on a thread of your own."},
	[CHECK_TRIGGERS_WHILE_SUSPENDED] = {"triggers-while-suspended", "The runtime is still suspended, and the CLR lets the call in.", "Call it in RuntimeResumeFinished or later."},
	[CHECK_INIT_ONLY] = {"init-only", "It is for Initialize: 80131356.", "Move the call to Initialize."},
	[CHECK_NOT_IMPLEMENTED] = {"not-implemented", "No CLR implements it: E_NOTIMPL.", "Remove the call."},
	[CHECK_CRASHES_IN_INITIALIZE] = {"crashes-in-initialize", "It does not check whether there is a heap: the process ends.", "Call it after the first GarbageCollectionFinished."},
	[CHECK_TOO_EARLY] = {"too-early", "The runtime has not started: 80131371 or 80131360.", "Wait for the first ThreadCreated."},
	[CHECK_DETACHING] = {"detaching", "The profiler has asked to be detached: 80131367, and its code may go at any moment.", "Stop every thread of yours before RequestProfilerDetach."},
	[CHECK_ATTACHED] = {"attached", "Not for an attached profiler: 8013136F.", "Load the profiler at startup."},
	[CHECK_NOTIFICATION] = {"notification", "Not for a notification profiler: E_INVALIDARG.", "Load it as the main profiler."},
	[CHECK_TYPE_ON_NATIVE_THREAD] = {"type-on-native-thread", "A type that is not loaded yet ends the process on a thread without a runtime Thread.", "Collect ids in callbacks (ClassLoadFinished, JITCompilationStarted)."},
	[CHECK_MANAGED_SAMPLER] = {"managed-sampler", "Only a thread that never ran managed code may suspend: a collection stops any other while it holds its target.", "Start a native thread for the sampler."},
	[CHECK_SAMPLER_BECOMES_MANAGED] = {"sampler-becomes-managed", "It makes the thread a managed one for good.", "Make the call on another thread than the sampler."},
	[CHECK_LOCK_OF_SUSPENDED] = {"lock-of-suspended", "It can wait for a lock that the suspended thread owns: a deadlock.", "Resume the thread first."},
	[CHECK_NESTED_SUSPENSION] = {"nested-suspension", "Suspensions do not nest: it answers S_OK, and after the first ResumeRuntime threads go round for ever where they return to managed code.", "Call SuspendRuntime once for each ResumeRuntime."},
	[CHECK_SUSPENDED_ELSEWHERE] = {"suspended-elsewhere", "It waits until the other thread resumes the runtime.", "Let one thread do all suspensions."},
	[CHECK_RESUME_WITHOUT_SUSPEND] = {"resume-without-suspend", "Nothing is suspended: 80131363.", "Call ResumeRuntime after a SuspendRuntime that answered S_OK."},
	[CHECK_RESUME_ELSEWHERE] = {"resume-elsewhere", "The ThreadStore lock stays with the thread that suspended: .NET 10 hangs.", "Resume on the thread that suspended."},
	[CHECK_HANGS_UNDER_SUSPENSION] = {"hangs-under-suspension", "It waits for a collection that cannot begin while the runtime is suspended.", "Call ResumeRuntime first."},
	[CHECK_THREAD_STORE_LOCK] = {"thread-store-lock", "The thread owns the ThreadStore lock while it holds the runtime: 80131363.", "Call it before SuspendRuntime or after ResumeRuntime."},
	[CHECK_LOCK_OVER_COLLECTION] = {"lock-over-collection", "A collection waits for threads that wait for your lock: a deadlock.", "Release the lock before the call."},
	[CHECK_CALL_IN_SNAPSHOT] = {"call-in-snapshot", "The walked thread is suspended: only methods that wait for no lock may be called.", "Store the FunctionID, and ask after DoStackSnapshot."},
	[CHECK_UNSUSPENDED_WALK] = {"unsuspended-walk", "Another thread is walked under SuspendRuntime only: E_NOTIMPL.", "Call SuspendRuntime first, on a native thread of your own."},
	[CHECK_MASK_WITHOUT_SNAPSHOT] = {"mask-without-snapshot", "The event mask lacks ENABLE_STACK_SNAPSHOT: 80131374.", "Set the bit in Initialize."},
	[CHECK_SNAPSHOT_FLAGS] = {"snapshot-flags", "Only COR_PRF_SNAPSHOT_REGISTER_CONTEXT (1) is known: E_INVALIDARG.", "Pass 0 or 1."},
	[CHECK_NULL_POINTER] = {"null-pointer", "The CLR uses the pointer without a check: the process ends.", "Pass a valid pointer."},
	[CHECK_THREAD_DESTROYED] = {"thread-destroyed", "The id's ThreadDestroyed has returned: the process ends with 8013135e, or reads memory that is no thread any more.", "Let ThreadDestroyed wait for the walk of that thread, and forget the id there."},
	[CHECK_OBJECT_MOVES] = {"object-moves", "A collection may move the object meanwhile, and the CLR's own check often lets the call in.", "Use an ObjectID only inside the callback that gave it, or keep a handle (CreateHandle)."},
	[CHECK_IMMUTABLE_BIT] = {"immutable-bit", "The bit changes in Initialize only: E_FAIL.", "Set the bit in Initialize."},
	[CHECK_ATTACHED_BIT] = {"attached-bit", "The bit is not for an attached profiler: 8013136F.", "Load the profiler at startup, or leave the bit out."},
	[CHECK_NOTIFICATION_BIT] = {"notification-bit", "The bit is not for a notification profiler: E_INVALIDARG.", "Leave the bit out."},
	[CHECK_UNBALANCED] = {"unbalanced", "A lock is released that the thread does not own.", "Release each lock once, on the thread that took it."},
	[CHECK_CALLBACK_SUSPENDED] = {"callback-suspended", "The callback returns and leaves the runtime suspended: every thread waits for ever.", "Suspend and resume on a native thread of your own."},
	[CHECK_LOCK_IN_SNAPSHOT] = {"lock-in-snapshot", "The walked thread may own the lock: a deadlock.", "Write into memory that is there before the walk."},
	[CHECK_LOCK_UNDER_SUSPENSION] = {"lock-under-suspension", "A thread that you hold suspended may own the lock: a deadlock.", "Take the lock before the suspension, or use atomics."},
	[CHECK_WAIT_IN_CALLBACK] = {"wait-in-callback", "The thread may be in cooperative mode here: while it waits no collection and no suspension begins.", "Use atomics, or a lock that is never held over a call of the CLR."},
	[CHECK_TWO_TARGETS] = {"two-targets", "One thread at a time: two that wait for each other never stop.", "Resume the first thread before you suspend the second."},
	[CHECK_RESUME_TWICE] = {"resume-twice", "It ends the suspension of another tool: the thread runs while somebody reads it.", "Resume once for each suspension."},
	[CHECK_FRAME_INFO] = {"frame-info", "A COR_PRF_FRAME_INFO is good only until the callback or hook that gave it returns: the CLR reads a frame that is gone.", "Call GetFunctionInfo2 inside the StackSnapshotCallback, or pass 0."},
	[CHECK_OWNER_ENDED] = {"owner-ended", "The thread ended while it held the runtime suspended: every thread waits for ever, and none may resume.", "Resume before the thread ends, also on error paths."},
	[CHECK_SHUTDOWN_SUSPENDED] = {"shutdown-suspended", "Shutdown returns while the runtime is suspended: the process never exits.", "Stop the sampler in Shutdown, and wait until it has resumed."},
	[CHECK_COLLECT_IN_CALLBACK] = {"collect-in-callback", "ForceGC is refused on a thread in a callback: 80131363.", "Call ForceGC on a native thread of your own that does not sample."},
	[CHECK_MONITOR_GC_LATE] = {"monitor-gc-late", "MONITOR_GC was set after Initialize, and collections are concurrent: 80131376.", "Set MONITOR_GC in Initialize, or use HIGH_BASIC_GC."},
	[CHECK_ENUMERATE_IN_COLLECTION] = {"enumerate-in-collection", "The collection owns the ThreadStore lock: another thread of a server collection waits for it for ever.", "Enumerate after RuntimeResumeFinished, on a thread of your own."},
	[CHECK_LOCK_KEPT] = {"lock-kept", "The callback returns with a lock that it took: the next callback on any thread waits for this thread.", "Release the lock in the callback that took it."},
	[CHECK_SEED_SIZE] = {"seed-size", "The CLR reads a whole CONTEXT, whatever contextSize says.", "Pass a full CONTEXT and its size."},
	[CHECK_SEED_EMPTY] = {"seed-empty", "The seed has no instruction pointer or no stack pointer: 8013135F, or a walk over memory that is no stack.", "Fill the CONTEXT from the suspended thread, with CONTEXT_FULL."},
	[CHECK_AFTER_SHUTDOWN] = {"after-shutdown", "The runtime is being torn down: the call may read what is freed.", "Stop every thread of yours in Shutdown before it returns."},
	[CHECK_DESTROYED_WAITS] = {"destroyed-waits", "ThreadDestroyed waits while SuspendRuntime waits for the ThreadStore lock, which the finalizer thread owns during ThreadDestroyed: a deadlock.", "Open the window that ThreadDestroyed waits for after SuspendRuntime has answered, and close it before ResumeRuntime."},
	[CHECK_CALLBACK_WAITS] = {"callback-waits", "The callback has waited for seconds while SuspendRuntime waits for its thread: a deadlock.", "Do not wait in this callback for anything that the sampler holds over SuspendRuntime."},
	[CHECK_SUSPENSION_TOO_LONG] = {"suspension-too-long", "The runtime has been suspended for 10 s without a call: the program does nothing.", "Copy while suspended; walk, name, and write after ResumeRuntime."},
	[CHECK_STALE_MODULE] = {"stale-module", "The module's ModuleUnloadFinished has returned: the CLR reads what is freed.", "Forget the id in ModuleUnloadStarted, and wait there for threads that use it."},
	[CHECK_STALE_CLASS] = {"stale-class", "The class's ClassUnloadFinished has returned: the CLR reads what is freed.", "Forget the id in ClassUnloadStarted."},
	[CHECK_STALE_FUNCTION] = {"stale-function", "The function's code is unloaded: the CLR reads what is freed.", "Forget the ids of a module in ModuleUnloadStarted, and those of dynamic methods in DynamicMethodUnloaded."},
	[CHECK_STALE_ASSEMBLY] = {"stale-assembly", "The assembly's AssemblyUnloadFinished has returned: the CLR reads what is freed.", "Forget the id in AssemblyUnloadStarted."},
	[CHECK_STALE_DOMAIN] = {"stale-domain", "The domain's AppDomainShutdownFinished has returned: the CLR reads what is freed.", "Forget the id in AppDomainShutdownStarted."},
	[CHECK_STALE_HANDLE] = {"stale-handle", "The handle has been destroyed: its place may belong to another object.", "Forget the handle before DestroyHandle."},
	[CHECK_STALE_SESSION] = {"stale-session", "The session has been stopped: its memory may belong to another one.", "Stop a session once."},
	[CHECK_FUNCTION_ZERO] = {"function-zero", "FunctionID 0 is a run of native frames, and no function: E_INVALIDARG.", "Test for 0 in the StackSnapshotCallback, and walk those frames yourself."},
	[CHECK_NOT_A_THREAD_ID] = {"not-a-thread-id", "The value is no ThreadID: the CLR takes it for a pointer. It looks like an id of the operating system.", "Use the id that ThreadCreated gives; ThreadAssignedToOSThread joins it to the system's."},
	[CHECK_RESUME_IN_SNAPSHOT] = {"resume-in-snapshot", "The runtime goes on in the middle of the walk: the CLR walks a stack that changes.", "Return from DoStackSnapshot first."},
	[CHECK_NESTED_SNAPSHOT] = {"nested-snapshot", "DoStackSnapshot inside a StackSnapshotCallback: both walks use the same state of the suspended thread.", "Walk one thread after the other."},
	[CHECK_RESUME_UNDER_WALK] = {"resume-under-walk", "Another thread is inside DoStackSnapshot: it walks a stack that changes from now on.", "Let one thread suspend, walk, and resume."},
	[CHECK_DESTROYED_IN_USE] = {"destroyed-in-use", "ThreadDestroyed returns while another thread walks that thread: the CLR reads a Thread that is gone.", "Wait in ThreadDestroyed until the walk of that thread has ended."},
	[CHECK_CALL_IN_SIGNAL] = {"call-in-signal", "A method is called inside another one: a signal handler interrupted the CLR, whose locks the thread may own.", "Copy registers and stack in the handler; call the CLR later."},
	[CHECK_OVER_RELEASED] = {"over-released", "Release was called more often than QueryInterface and AddRef: the info interface may be freed.", "Release once for each reference that you took."},
	[CHECK_INTERFACE_NOT_ASKED] = {"interface-not-asked", "The method belongs to a later interface than QueryInterface gave: an older CLR calls what lies behind its table.", "Ask QueryInterface for the interface that has the method."},
	[CHECK_DETACH_IMMUTABLE] = {"detach-immutable", "The event mask has bits that cannot be undone: RequestProfilerDetach is refused.", "Leave out the bits that are for Initialize only, or do not detach."},
	[CHECK_ELT_INFO] = {"elt-info", "The COR_PRF_ELT_INFO is good only inside the enter, leave, or tail call hook that gave it.", "Call it in the hook, on its thread."},
	[CHECK_ENDED_WITH_LOCK] = {"ended-with-lock", "The thread ended with a lock: everybody else waits for ever.", "Release the lock before the thread ends."},
	[CHECK_ENDED_WITH_SUSPENDED] = {"ended-with-suspended", "The thread ended while another thread was suspended by it: that thread never runs again.", "Resume before the thread ends."},
	[CHECK_SUSPENDED_KEPT] = {"suspended-kept", "The callback returns while a thread is suspended by it: the CLR may wait for what that thread owns.", "Resume in the callback that suspended, or better on a native thread."},
	[CHECK_MISSING_BIT] = {"missing-bit", "The event mask lacks the bit that the method needs.", "Set the bit in Initialize: `seedwalk rules METHOD` names it."},
	[CHECK_REFUSED] = {"refused", "The CLR refused the call: 80131363, the wrong place for this method.", "Look up the method's places: `seedwalk rules METHOD`."},
};

static const struct callback_row callback_rows[] = {
	[3] = {"Initialize", TRIGGERS | MAY_WAIT},
	[4] = {"Shutdown", TRIGGERS | MAY_WAIT},
	[5] = {"AppDomainCreationStarted", TRIGGERS | MAY_WAIT},
	[6] = {"AppDomainCreationFinished", TRIGGERS | MAY_WAIT},
	[7] = {"AppDomainShutdownStarted", TRIGGERS | MAY_WAIT},
	[8] = {"AppDomainShutdownFinished", TRIGGERS | MAY_WAIT},
	[9] = {"AssemblyLoadStarted", TRIGGERS | OBJECTS},
	[10] = {"AssemblyLoadFinished", TRIGGERS | OBJECTS},
	[11] = {"AssemblyUnloadStarted", TRIGGERS | MAY_WAIT},
	[12] = {"AssemblyUnloadFinished", TRIGGERS | MAY_WAIT},
	[13] = {"ModuleLoadStarted", TRIGGERS | OBJECTS},
	[14] = {"ModuleLoadFinished", TRIGGERS | MAY_WAIT},
	[15] = {"ModuleUnloadStarted", TRIGGERS | MAY_WAIT},
	[16] = {"ModuleUnloadFinished", TRIGGERS | MAY_WAIT},
	[17] = {"ModuleAttachedToAssembly", TRIGGERS | MAY_WAIT},
	[18] = {"ClassLoadStarted", TRIGGERS | MAY_WAIT},
	[19] = {"ClassLoadFinished", TRIGGERS | MAY_WAIT},
	[20] = {"ClassUnloadStarted", TRIGGERS | MAY_WAIT},
	[21] = {"ClassUnloadFinished", TRIGGERS | MAY_WAIT},
	[22] = {"FunctionUnloadStarted", 0},
	[23] = {"JITCompilationStarted", TRIGGERS | MAY_WAIT},
	[24] = {"JITCompilationFinished", TRIGGERS | MAY_WAIT},
	[25] = {"JITCachedFunctionSearchStarted", TRIGGERS | MAY_WAIT},
	[26] = {"JITCachedFunctionSearchFinished", TRIGGERS | MAY_WAIT},
	[27] = {"JITFunctionPitched", 0},
	[28] = {"JITInlining", TRIGGERS | MAY_WAIT},
	[29] = {"ThreadCreated", TRIGGERS | MAY_WAIT},
	[30] = {"ThreadDestroyed", TRIGGERS | MAY_WAIT},
	[31] = {"ThreadAssignedToOSThread", OBJECTS},
	[32] = {"RemotingClientInvocationStarted", 0},
	[33] = {"RemotingClientSendingMessage", 0},
	[34] = {"RemotingClientReceivingReply", 0},
	[35] = {"RemotingClientInvocationFinished", 0},
	[36] = {"RemotingServerReceivingMessage", 0},
	[37] = {"RemotingServerInvocationStarted", 0},
	[38] = {"RemotingServerInvocationReturned", 0},
	[39] = {"RemotingServerSendingReply", 0},
	[40] = {"UnmanagedToManagedTransition", TRIGGERS | MAY_WAIT},
	[41] = {"ManagedToUnmanagedTransition", TRIGGERS | MAY_WAIT},
	[42] = {"RuntimeSuspendStarted", 0},
	[43] = {"RuntimeSuspendFinished", 0},
	[44] = {"RuntimeSuspendAborted", 0},
	[45] = {"RuntimeResumeStarted", TRIGGERS | OBJECTS},
	[46] = {"RuntimeResumeFinished", TRIGGERS | MAY_WAIT},
	[47] = {"RuntimeThreadSuspended", OBJECTS},
	[48] = {"RuntimeThreadResumed", OBJECTS},
	[49] = {"MovedReferences", OBJECTS},
	[50] = {"ObjectAllocated", TRIGGERS | OBJECTS},
	[51] = {"ObjectsAllocatedByClass", OBJECTS},
	[52] = {"ObjectReferences", OBJECTS},
	[53] = {"RootReferences", OBJECTS},
	[54] = {"ExceptionThrown", TRIGGERS | OBJECTS},
	[55] = {"ExceptionSearchFunctionEnter", TRIGGERS | MAY_WAIT},
	[56] = {"ExceptionSearchFunctionLeave", TRIGGERS | MAY_WAIT},
	[57] = {"ExceptionSearchFilterEnter", TRIGGERS | MAY_WAIT},
	[58] = {"ExceptionSearchFilterLeave", TRIGGERS | MAY_WAIT},
	[59] = {"ExceptionSearchCatcherFound", TRIGGERS | MAY_WAIT},
	[60] = {"ExceptionOSHandlerEnter", 0},
	[61] = {"ExceptionOSHandlerLeave", 0},
	[62] = {"ExceptionUnwindFunctionEnter", 0},
	[63] = {"ExceptionUnwindFunctionLeave", 0},
	[64] = {"ExceptionUnwindFinallyEnter", OBJECTS},
	[65] = {"ExceptionUnwindFinallyLeave", OBJECTS},
	[66] = {"ExceptionCatcherEnter", OBJECTS},
	[67] = {"ExceptionCatcherLeave", TRIGGERS | OBJECTS},
	[68] = {"COMClassicVTableCreated", TRIGGERS | MAY_WAIT},
	[69] = {"COMClassicVTableDestroyed", 0},
	[70] = {"ExceptionCLRCatcherFound", 0},
	[71] = {"ExceptionCLRCatcherExecute", 0},
	[72] = {"ThreadNameChanged", TRIGGERS | MAY_WAIT},
	[73] = {"GarbageCollectionStarted", OBJECTS},
	[74] = {"SurvivingReferences", OBJECTS},
	[75] = {"GarbageCollectionFinished", OBJECTS},
	[76] = {"FinalizeableObjectQueued", TRIGGERS | OBJECTS},
	[77] = {"RootReferences2", OBJECTS},
	[78] = {"HandleCreated", OBJECTS},
	[79] = {"HandleDestroyed", OBJECTS},
	[80] = {"InitializeForAttach", TRIGGERS | MAY_WAIT},
	[81] = {"ProfilerAttachComplete", TRIGGERS | MAY_WAIT},
	[82] = {"ProfilerDetachSucceeded", TRIGGERS | MAY_WAIT},
	[83] = {"ReJITCompilationStarted", TRIGGERS | MAY_WAIT},
	[84] = {"GetReJITParameters", TRIGGERS | MAY_WAIT},
	[85] = {"ReJITCompilationFinished", TRIGGERS | MAY_WAIT},
	[86] = {"ReJITError", TRIGGERS | MAY_WAIT},
	[87] = {"MovedReferences2", OBJECTS},
	[88] = {"SurvivingReferences2", OBJECTS},
	[89] = {"ConditionalWeakTableElementReferences", OBJECTS},
	[90] = {"GetAssemblyReferences", 0},
	[91] = {"ModuleInMemorySymbolsUpdated", TRIGGERS | MAY_WAIT},
	[92] = {"DynamicMethodJITCompilationStarted", TRIGGERS | MAY_WAIT},
	[93] = {"DynamicMethodJITCompilationFinished", TRIGGERS | MAY_WAIT},
	[94] = {"DynamicMethodUnloaded", TRIGGERS | OBJECTS},
	[95] = {"EventPipeEventDelivered", OBJECTS},
	[96] = {"EventPipeProviderCreated", TRIGGERS},
	[97] = {"LoadAsNotificationOnly", 0},
};

static const struct mask_row mask_rows[] = {
	{"MONITOR_FUNCTION_UNLOADS", 0, 0x1, NO_ATTACH},
	{"MONITOR_CLASS_LOADS", 0, 0x2, 0},
	{"MONITOR_MODULE_LOADS", 0, 0x4, 0},
	{"MONITOR_ASSEMBLY_LOADS", 0, 0x8, 0},
	{"MONITOR_APPDOMAIN_LOADS", 0, 0x10, 0},
	{"MONITOR_JIT_COMPILATION", 0, 0x20, 0},
	{"MONITOR_EXCEPTIONS", 0, 0x40, 0},
	{"MONITOR_GC", 0, 0x80, NO_NOTIFY},
	{"MONITOR_OBJECT_ALLOCATED", 0, 0x100, NO_ATTACH},
	{"MONITOR_THREADS", 0, 0x200, 0},
	{"MONITOR_REMOTING", 0, 0x400, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"MONITOR_CODE_TRANSITIONS", 0, 0x800, BIT_FIXED | NO_ATTACH},
	{"MONITOR_ENTERLEAVE", 0, 0x1000, NO_ATTACH | NO_NOTIFY},
	{"MONITOR_CCW", 0, 0x2000, NO_ATTACH},
	{"MONITOR_REMOTING_COOKIE", 0, 0x4000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"MONITOR_REMOTING_ASYNC", 0, 0x8000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"MONITOR_SUSPENDS", 0, 0x10000, 0},
	{"MONITOR_CACHE_SEARCHES", 0, 0x20000, NO_ATTACH},
	{"ENABLE_REJIT", 0, 0x40000, NO_NOTIFY},
	{"ENABLE_INPROC_DEBUGGING", 0, 0x80000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"ENABLE_JIT_MAPS", 0, 0x100000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"DISABLE_INLINING", 0, 0x200000, 0},
	{"DISABLE_OPTIMIZATIONS", 0, 0x400000, 0},
	{"ENABLE_OBJECT_ALLOCATED", 0, 0x800000, BIT_FIXED | NO_ATTACH},
	{"MONITOR_CLR_EXCEPTIONS", 0, 0x1000000, NO_ATTACH},
	{"ENABLE_FUNCTION_ARGS", 0, 0x2000000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"ENABLE_FUNCTION_RETVAL", 0, 0x4000000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"ENABLE_FRAME_INFO", 0, 0x8000000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"ENABLE_STACK_SNAPSHOT", 0, 0x10000000, 0},
	{"USE_PROFILE_IMAGES", 0, 0x20000000, BIT_FIXED | NO_ATTACH},
	{"DISABLE_TRANSPARENCY_CHECKS_UNDER_FULL_TRUST", 0, 0x40000000, BIT_FIXED | NO_ATTACH | NO_NOTIFY},
	{"DISABLE_ALL_NGEN_IMAGES", 0, 0x80000000, BIT_FIXED | NO_ATTACH},
	{"HIGH_ADD_ASSEMBLY_REFERENCES", 1, 0x1, NO_ATTACH | NO_NOTIFY},
	{"HIGH_IN_MEMORY_SYMBOLS_UPDATED", 1, 0x2, 0},
	{"HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS", 1, 0x4, 0},
	{"HIGH_DISABLE_TIERED_COMPILATION", 1, 0x8, BIT_FIXED | NO_ATTACH},
	{"HIGH_BASIC_GC", 1, 0x10, 0},
	{"HIGH_MONITOR_GC_MOVED_OBJECTS", 1, 0x20, 0},
	{"HIGH_MONITOR_LARGEOBJECT_ALLOCATED", 1, 0x40, 0},
	{"HIGH_MONITOR_EVENT_PIPE", 1, 0x80, 0},
	{0, 0, 0, 0}};

/* The interfaces that the proxy knows. */
static const uint8_t info_ids[][16] = {
	{0x7d, 0x55, 0xb5, 0x28, 0x3f, 0x3f, 0xb4, 0x48, 0x90, 0xb2, 0x5f, 0x9e, 0xea, 0x2f, 0x6c, 0x48},
	{0xcd, 0x35, 0x09, 0xcc, 0x18, 0xa5, 0x7d, 0x48, 0xb0, 0xbb, 0xa9, 0x32, 0x14, 0xe6, 0x54, 0x78},
	{0x4f, 0xed, 0x55, 0xb5, 0x2a, 0x45, 0x54, 0x4e, 0x8b, 0x39, 0xb5, 0x36, 0x0b, 0xad, 0x32, 0xa0},
	{0xaa, 0xdc, 0x8f, 0x0d, 0x57, 0x62, 0xbf, 0x47, 0xb1, 0xbf, 0x94, 0xda, 0xc8, 0x84, 0x66, 0xee},
	{0x28, 0x29, 0x60, 0x07, 0x38, 0xce, 0x83, 0x4b, 0x81, 0xe7, 0x74, 0xad, 0xaf, 0x78, 0x12, 0x14},
	{0x0d, 0x07, 0x0a, 0xf3, 0xfb, 0xbf, 0xa7, 0x46, 0xb1, 0xd8, 0x87, 0x81, 0xef, 0x7b, 0x69, 0x8a},
	{0x0d, 0xcc, 0xee, 0x9a, 0xe0, 0x63, 0x87, 0x41, 0x8c, 0x00, 0xe3, 0x12, 0xf5, 0x03, 0xf6, 0x63},
	{0xa6, 0x80, 0xac, 0xc5, 0x2e, 0x78, 0x16, 0x47, 0x80, 0x44, 0x39, 0x59, 0x8c, 0x60, 0xcf, 0xbf},
	{0xdb, 0x70, 0x81, 0x00, 0xcc, 0xf8, 0x96, 0x47, 0x9a, 0x51, 0xdc, 0x8a, 0xa0, 0xb4, 0x70, 0x12},
	{0x52, 0x51, 0x1b, 0x2f, 0x69, 0xc8, 0xc9, 0x40, 0xaa, 0x5f, 0x3a, 0xbe, 0x02, 0x6b, 0xd7, 0x20},
	{0x76, 0x88, 0x39, 0x06, 0x87, 0x89, 0x54, 0x41, 0xb6, 0x21, 0x40, 0xa0, 0x0d, 0x6e, 0x4d, 0x04},
	{0xcd, 0x4c, 0xb2, 0x27, 0xb1, 0x1c, 0xc5, 0x47, 0x96, 0xee, 0x98, 0x19, 0x0d, 0xc3, 0x09, 0x59},
	{0xe2, 0x7e, 0x6c, 0x6e, 0x01, 0x07, 0xc2, 0x4e, 0x9d, 0x29, 0x2e, 0x87, 0x33, 0xb6, 0x69, 0x34},
	{0x52, 0xe3, 0x60, 0xf4, 0x6d, 0xd7, 0xe9, 0x4f, 0x83, 0x5f, 0xf6, 0xaf, 0x9d, 0x6e, 0x86, 0x2d},
	{0x2d, 0x46, 0x46, 0xb4, 0x22, 0xbd, 0xdd, 0x41, 0x87, 0x2d, 0xdc, 0x71, 0x4c, 0x49, 0xeb, 0x56},
};

static const uint8_t callback_ids[][16] = {
	{0xd1, 0xbe, 0x6f, 0x17, 0x5c, 0xa5, 0x96, 0x47, 0x98, 0xca, 0xa9, 0xda, 0x0e, 0xf8, 0x83, 0xe7},
	{0x29, 0xc8, 0x8c, 0x8a, 0xf2, 0xcc, 0xfe, 0x49, 0xbb, 0xae, 0x0f, 0x02, 0x22, 0x28, 0x07, 0x1a},
	{0x52, 0xed, 0xd2, 0x4f, 0x31, 0x77, 0x8d, 0x4b, 0x94, 0x69, 0x03, 0xd2, 0xcc, 0x30, 0x86, 0xc5},
	{0xe3, 0xb2, 0x63, 0x7b, 0x7d, 0x10, 0x48, 0x4d, 0xb2, 0xf6, 0xf6, 0x1e, 0x22, 0x94, 0x70, 0xd2},
	{0x05, 0xa4, 0xfb, 0x8d, 0x9f, 0x8c, 0xf8, 0x45, 0xbf, 0xfa, 0x83, 0xb1, 0x4c, 0xef, 0x78, 0xb5},
	{0x4b, 0xdf, 0x13, 0xfc, 0x48, 0x44, 0x4f, 0x4f, 0x95, 0x0c, 0xba, 0x8d, 0x19, 0xd0, 0x0c, 0x36},
	{0xba, 0x2d, 0x6a, 0xf7, 0x52, 0x1d, 0x39, 0x45, 0x86, 0x6c, 0x2a, 0xa5, 0x18, 0xf9, 0xef, 0xc3},
	{0x15, 0x9b, 0xed, 0x5b, 0x79, 0xc0, 0x47, 0x4d, 0xbf, 0xe2, 0x21, 0x5a, 0x14, 0x0c, 0x07, 0xe0},
	{0xc3, 0x3e, 0x58, 0x27, 0xf5, 0xc8, 0x2f, 0x48, 0x80, 0x52, 0x19, 0x4b, 0x8c, 0xe4, 0x70, 0x5a},
	{0x0e, 0xb6, 0xc5, 0xce, 0x9c, 0xc6, 0x5f, 0x49, 0x87, 0xf6, 0x84, 0xd2, 0x8e, 0xe1, 0x6f, 0xfb},
	{0x46, 0x08, 0x35, 0x42, 0xed, 0xaa, 0xf7, 0x47, 0xb1, 0x28, 0xfd, 0x0c, 0x98, 0x88, 0x1c, 0xde},
};

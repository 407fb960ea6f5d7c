// What is folded: frames that say nothing of the program, and threads that wait.

// NAMELESS is a function without a symbol: libcoreclr.so+0x675630.
const NAMELESS = /\+0x[0-9a-f]+$/;

// STARTS are functions in which a system starts a thread or a program.
const STARTS = /^(__?clone3?|clone3?|start_thread|_start|_dl_start.*|__libc_start_main.*|__libc_start_call_main|main|coreclr_execute_assembly|coreclr_main|hostfxr_main.*|corehost_main.*|RtlUserThreadStart|BaseThreadInitThunk|mainCRTStartup|__tmainCRTStartup|wmain)$/;

// WAITS are functions at the leaf of a thread that waits: for a lock, a time, input.
const WAITS = /^(__futex_abstimed_wait\w*|futex_wait\w*|do_futex_wait\w*|\w*lll_\w*wait\w*|_*pthread_cond_(timed|clock)?wait\w*|_*sem_(timed|clock)?wait\w*|__new_sem_wait\w*|_*epoll_p?wait2?|_*p?poll|_*p?select|_*(clock_)?nanosleep\w*|_*sigwait\w*|_*sigtimedwait\w*|_*rt_sigtimedwait|_*accept4?|_*wait4|_*waitpid|Nt(WaitFor\w+|DelayExecution|RemoveIoCompletion\w*|SignalAndWaitForSingleObject|WaitForAlertByThreadId)|Zw(WaitFor\w+|DelayExecution|RemoveIoCompletion\w*)|win32u?\.?NtUserMsgWait\w*)$/;

// MANAGED_WAITS are the same for profiles without native frames, such as those of traces.
const MANAGED_WAITS = /^System\.Threading\.(Thread\.(Sleep|Join)|WaitHandle\.Wait\w*|Monitor\.(Wait|ObjWait|Enter\w*)|LowLevel(LifoSemaphore|Monitor)\.Wait\w*|LowLevelSpinWaiter\.Wait)([<(].*)?$/;

// pseudo adds a symbol that stands for several frames.
function pseudo(name, note) {
  return symbols.push({ name, module: "", cls: data.classes.indexOf("runtime"), doubtful: false, note }) - 1;
}

const START = pseudo("[thread start]", "frames in which the system and the runtime start the thread, folded into one");
const WAITING = pseudo("[waiting]", "threads that wait, folded into one box for each place that waits");

const MORE = pseudo("[more callers]", "callers of a light leaf, left out because there are too many");

// A page of more nodes than this opens unfolded: folding needs an index of them.
const MAX_FOLDED = 1e6;

// startNodes marks the nodes to fold into START: from the root on, as long as they are
// nameless or known to start threads, and the thread comes to managed code beyond them.
function startNodes() {
  const managed = data.classes.indexOf("managed"), below = new Uint8Array(base.n), start = new Uint8Array(base.n);
  const starts = symbols.map(s => s.cls !== GAP && s.cls !== managed && s.cls !== ASYNC && !s.doubtful && (NAMELESS.test(s.name) || STARTS.test(s.name)));
  for (let i = base.n - 1; i > 0; i--) if (below[i] || symbols[base.symbol[i]].cls === managed) below[base.parent[i]] = 1;
  for (let i = 1; i < base.n; i++) start[i] = below[i] && starts[base.symbol[i]] && (base.parent[i] === 0 || start[base.parent[i]] || symbols[base.symbol[base.parent[i]]].cls === ASYNC) ? 1 : 0;
  return start;
}

// HELPERS start or resume the body of an async method.
const HELPERS = /^System\.(Runtime\.CompilerServices\.(Pooling)?Async\w*MethodBuilder(Core)?(<.*>)?(\.\w*StateMachineBox(<.*>)?)?\.(Start|MoveNext|ExecutionContextCallback)|Threading\.ExecutionContext\.(Run|RunInternal|RunFromThreadPoolDispatchLoop))([<(].*)?$/;

// helperNodes marks the nodes that only lead to the body of an async method: helpers at
// which no stack ends, and all of whose callees are such bodies or further helpers.
function helperNodes() {
  const managed = data.classes.indexOf("managed"), other = new Uint8Array(base.n), helps = new Uint8Array(base.n);
  const body = symbols.map(s => s.cls === managed && s.name.includes(" (async")), helper = symbols.map(s => s.cls === managed && !s.doubtful && HELPERS.test(s.name));
  for (const row of data.stacks) for (let i = 0; i < row.length; i += STRIDE) other[row[i]] = 1;
  for (let i = base.n - 1; i > 0; i--) {
    helps[i] = helper[base.symbol[i]] && !other[i] ? 1 : 0;
    if (!helps[i] && !body[base.symbol[i]]) other[base.parent[i]] = 1;
  }
  return helps;
}

// waitSites gives each node at whose leaf a thread waits, in the kernel or not, the symbol
// of the place: the innermost managed frame, or else the outermost named one that does not
// start threads.
function waitSites() {
  const managed = data.classes.indexOf("managed"), native = symbols.map(s => WAITS.test(s.name)), any = native.some(w => w);
  const waits = any ? native : symbols.map(s => s.cls === managed && MANAGED_WAITS.test(s.name)), site = new Int32Array(base.n).fill(-1);
  const kernel = data.classes.indexOf("kernel"), known = new Map();
  for (let i = 1; i < base.n; i++) {
    let at = symbols[base.symbol[i]].cls === kernel ? base.parent[i] : i, named = -1, module = "";
    if (at === 0 || !waits[base.symbol[at]]) continue;
    while (at > 0 && (symbols[base.symbol[at]].cls !== managed || waits[base.symbol[at]])) {
      const s = symbols[base.symbol[at]];
      if (s.cls === GAP) break;
      if (!waits[base.symbol[at]] && !STARTS.test(s.name)) {
        if (NAMELESS.test(s.name)) module = s.module; else named = base.symbol[at];
      }
      at = base.parent[at];
    }
    if (at > 0) {
      if (symbols[base.symbol[at]].cls === managed) site[i] = base.symbol[at]; // a gap: it is not known who waits
      continue;
    }
    const name = "[thread of " + module + "]";
    if (named < 0 && !known.has(name)) known.set(name, pseudo(name, "a thread without managed frames, whose frames have no names"));
    site[i] = named >= 0 ? named : known.get(name);
  }
  return site;
}

// folds are made when they are first wanted.
const folds = (() => {
  let made = null;
  return () => made || (made = { start: startNodes(), helps: helperNodes(), site: waitSites() });
})();

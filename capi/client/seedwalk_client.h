/* seedwalk_client.h: the sampler of seedwalk.h without Go and without suspensions of the runtime, for Linux
 * and Windows x64.
 *
 * libseedwalk_client has the seedwalk_sampler_ functions of seedwalk.h, seedwalk_error_text,
 * seedwalk_gap_name, and seedwalk_version. To use it in place of the library, a profiler changes only its
 * link line. seedwalk_sampler_open starts the tool (`seedwalk engine`) as a helper process beside the
 * program. The helper samples running threads by their CPU time and blocked ones from outside, walks
 * the copies, and sends the stacks. It needs .NET 8 or later, on Windows .NET 10 or later.
 * Differences from the in-process library:
 *   - seedwalk_sampler_open may be called at any time, on any thread, with or without options, and
 *     again after seedwalk_sampler_close. No callback has to be forwarded and no event mask to be
 *     set; with ThreadAssignedToOSThread forwarded, a stack has its ThreadID.
 *   - seedwalk_sampler_sample takes no samples. It returns the stacks that have arrived, at most 4096, and
 *     does not wait. Call it every 10 ms or so, on any thread, by one thread at a time. If no thread calls it,
 *     the socket fills up, further samples are dropped, and the program runs on.
 *   - The same call returns copies and samples, in the order of the walks. `tag` distinguishes them.
 *   - A sample represents cpu_ns of CPU time, or wall_ns of waiting. Each is 0 for a copy.
 *   - seedwalk_sampler_next returns one stack, which is valid until the next call.
 *   - seedwalk_sampler_close returns SEEDWALK_BUSY if a call of another thread does not return in 3 s. The
 *     sampler stays open: close it again later.
 *   - SEEDWALK_ENGINE_GONE: the helper has ended, or hangs. Everything in this process has been restored.
 *     seedwalk_sampler_open starts another one. SEEDWALK_REFUSED: the runtime cannot be read.
 *   - Without a helper, for example in a container without the tool or under a filter that forbids exec,
 *     seedwalk_sampler_open returns SEEDWALK_NO_ENGINE. If `keep` is the path of a new file, it makes the
 *     file and returns SEEDWALK_OK. seedwalk_sampler_problem then says where the copies are and why. There are no
 *     samples, and no stacks arrive: `seedwalk stack --copies FILE PID` walks the copies while the process
 *     runs, and `--core CORE` instead of PID after its end. The file has room for 4 MB of copies. After that,
 *     seedwalk_sampler_copy returns SEEDWALK_FULL. The file must not exist, because it is never overwritten.
 *     seedwalk_sampler_close leaves it. SEEDWALK_SYSTEM: the file cannot be made, or the disk is full. Do not
 *     truncate it while the process runs.
 * Windows: the helper suspends one thread at a time while it copies that thread's registers and stack. If
 * the helper dies meanwhile, the next call of seedwalk_sampler_sample, _next, or _close resumes that thread.
 * If the suspended thread is itself the only caller, nothing resumes it. `keep` is not supported.
 * The library stays mapped once it has been opened. In a forked process every call returns
 * SEEDWALK_NOT_OPEN until it calls seedwalk_sampler_open. */
#ifndef SEEDWALK_CLIENT_H
#define SEEDWALK_CLIENT_H

#include "seedwalk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* flags of seedwalk_client_options */
enum {
	SEEDWALK_CLIENT_NO_CPU = 1,  /* no samples of running threads */
	SEEDWALK_CLIENT_NO_WALL = 2, /* no samples of blocked threads */
};

typedef struct {
	uint32_t size;
	uint32_t flags;
	uint32_t millihertz; /* samples per second and thread, times 1000, at most 1000000; 0: 100 per second */
	uint32_t reserved;
	/* path of the tool, in UTF-8, a string that must stay valid; null: the environment variable SEEDWALK_ENGINE, or
	 * `seedwalk` next to the library */
	const char *engine;
	/* path of a file for the copies if the helper cannot be started, a string that must stay valid; null: none */
	const char *keep;
} seedwalk_client_options;

/* Sets the options of the next seedwalk_sampler_open. */
extern int seedwalk_client_configure(const seedwalk_client_options *options);

#ifdef __cplusplus
}
#endif
#endif

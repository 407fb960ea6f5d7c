/* Texts of errors and gaps, and the sizes of structures, for both libraries. They are in C because a callback
 * may request a text, and because the client library has no Go. */
#include "sampler.h"

#include <string.h>

/* Indexed by the negated error number. */
static const char *const texts[] = {
	[-SEEDWALK_OK] = "no error",
	[-SEEDWALK_BAD_HANDLE] = "the handle is not open",
	[-SEEDWALK_BAD_ARGUMENT] = "an argument is invalid: a null pointer, a length of 0, or a number that the header does not define",
	[-SEEDWALK_UNREADABLE] = "the module's file, or the process's mappings, cannot be read",
	[-SEEDWALK_SHORT_STRUCT] = "the size of a structure is less than its fields that must be there: set it to sizeof",
	[-SEEDWALK_UNKNOWN_FIELD] = "a structure has a field that this library does not know and that is not 0: is the header newer than the library?",
	[-SEEDWALK_BUSY] = "another thread is inside the library with the same handle, or samples",
	[-SEEDWALK_TOO_MANY] = "64 handles are open",
	[-SEEDWALK_NO_MODULE] = "no module of the last commit has this id",
	[-SEEDWALK_NOT_OPEN] = "the sampler is not open: seedwalk_sampler_open was not called, has failed, or seedwalk_sampler_close was called",
	[-SEEDWALK_SECOND] = "the process has a sampler, or had one: only the client library can open another after seedwalk_sampler_close",
	[-SEEDWALK_WRONG_THREAD] = "this thread runs managed code or a callback: sample on a thread of your own that never does",
	[-SEEDWALK_OLD_RUNTIME] = "the runtime is too old to be sampled: .NET Core 3.0 on Linux, 2.0 on Windows",
	[-SEEDWALK_NOT_FORWARDED] = "a callback is not forwarded: seedwalk_sampler_problem says which",
	[-SEEDWALK_NO_EVENTS] = "the runtime's event mask lacks bits of SEEDWALK_SAMPLER_EVENTS",
	[-SEEDWALK_REFUSED] = "the runtime refuses to walk stacks, for ever",
	[-SEEDWALK_SYSTEM] = "the system refuses something: seedwalk_sampler_problem says what",
	[-SEEDWALK_UNSUPPORTED] = "there is no sampler for this architecture",
	[-SEEDWALK_FULL] = "no room for another copy: it is dropped",
	[-SEEDWALK_TAKEN] = "SIGRTMIN+5 has another handler, or none, since seedwalk_sampler_open: no thread would answer",
	[-SEEDWALK_NO_ENGINE] = "the helper process cannot be started: seedwalk_sampler_problem says why",
	[-SEEDWALK_ENGINE_GONE] = "the helper process has ended, or hangs: seedwalk_sampler_open starts another",
};

int sw_give(const char *text, char *out, int32_t room)
{
	int n = 0;
	if (!out || room <= 0)
		return SEEDWALK_BAD_ARGUMENT;
	for (; text[n] && n < room - 1; n++)
		out[n] = text[n];
	out[n] = 0;
	return n;
}

SW_EXPORT int seedwalk_error_text(int32_t error, char *out, int32_t room)
{
	size_t known = sizeof texts / sizeof *texts;
	int ours = error <= 0 && error > -(int32_t)known;
	return sw_give(ours ? texts[-error] : "unknown error", out, room);
}

/* Indexed by the gap's number (stack/merge). */
static const char *const gaps[] = {"none", "no-answer", "thread-gone", "foreign-stack", "stack-truncated", "no-unwind-info", "bad-unwind-info",
	"unsupported-unwind-info", "unreadable-stack", "no-progress", "too-many-frames", "lost-managed-frame", "managed-frame-mismatch", "clr-refused",
	"clr-report-cut", "stub-on-top", "runtime-not-readable", "code-unloaded"};

SW_EXPORT int seedwalk_gap_name(int32_t gap, char *out, int32_t room)
{
	int known = gap >= 0 && gap < (int32_t)(sizeof gaps / sizeof *gaps);
	return sw_give(known ? gaps[gap] : "gap?", out, room);
}

/* The rules of seedwalk.h about sizes, as in sized.go. A larger structure than MOST_STRUCT was never set. */
enum { MOST_STRUCT = 4096 };

static int size_of(const void *p, uint32_t least, uint32_t *size)
{
	if (!p)
		return SEEDWALK_BAD_ARGUMENT;
	memcpy(size, p, sizeof *size);
	if (*size < least)
		return SEEDWALK_SHORT_STRUCT;
	return *size > MOST_STRUCT ? SEEDWALK_UNKNOWN_FIELD : SEEDWALK_OK;
}

int sw_sized(void *to, uint32_t known, uint32_t least, const void *from)
{
	uint32_t size;
	int err = size_of(from, least, &size);
	if (err)
		return err;
	memset(to, 0, known);
	memcpy(to, from, size < known ? size : known);
	for (uint32_t i = known; i < size; i++)
		if (((const uint8_t *)from)[i])
			return SEEDWALK_UNKNOWN_FIELD;
	return SEEDWALK_OK;
}

int sw_answerable(const void *to, uint32_t least)
{
	uint32_t size;
	return to ? size_of(to, least, &size) : SEEDWALK_OK;
}

void sw_return(void *to, uint32_t known, const void *from)
{
	uint32_t size;
	if (!to)
		return;
	memcpy(&size, to, sizeof size);
	memset(to, 0, size);
	memcpy(to, from, size < known ? size : known);
	memcpy(to, &size, sizeof size);
}

static char problem[400] = "no call has failed yet";

void sw_problem(const char *what) { sw_give(what, problem, sizeof problem); }

int sw_told(int error)
{
	switch (error) {
	case SEEDWALK_OK: /* the last problem can still be read */
	case SEEDWALK_NOT_FORWARDED:
	case SEEDWALK_NO_EVENTS:
	case SEEDWALK_OLD_RUNTIME:
	case SEEDWALK_REFUSED:
	case SEEDWALK_SYSTEM:
	case SEEDWALK_NO_ENGINE:
	case SEEDWALK_ENGINE_GONE:
		return error; /* already described in more detail */
	}
	sw_problem(texts[-error]);
	return error;
}

SW_EXPORT int seedwalk_sampler_problem(char *out, int32_t room) { return sw_give(problem, out, room); }

/* Interfaces between the client's files. */
#ifndef SEEDWALK_CLIENT_LOCAL_H
#define SEEDWALK_CLIENT_LOCAL_H

#include "../../../sample/probe/src/local.h"
#include "../../seedwalk.h"
#include "../seedwalk_client.h"

#include "ids.h"

/* capi/errors.c: the text of the last problem. */
void sw_problem(const char *what);
int sw_told(int error);
int sw_give(const char *text, char *out, int32_t room);
/* Structures of the caller, which begin with their size (seedwalk.h). sw_sized copies one into ours, of known
 * bytes. sw_answerable checks one for results, and sw_return fills it; both accept NULL. */
int sw_sized(void *to, uint32_t known, uint32_t least, const void *from);
int sw_answerable(const void *to, uint32_t least);
void sw_return(void *to, uint32_t known, const void *from);

/* system_linux.c, system_windows.c: this process. */
uint32_t sw_process(void); /* the number of this process */
void sw_pause(void);       /* sleeps for a millisecond */
int sw_lives(uint32_t tid); /* 0 if there is no such thread */
int32_t sw_live_threads(void); /* how many threads this process has, 0 if unknown */
void sw_stay(void);        /* keeps the library mapped: a thread may be in it at any time */
/* sw_find sets the path of the tool: as configured, from SEEDWALK_ENGINE, or next to this library. */
void sw_find(const char *configured, char *path, size_t room);
void sw_reason(int error, char *out, size_t room); /* describes an error of sw_spawn */

/* spawn_linux.c, spawn_windows.c: the helper process. */
#ifdef _WIN32
struct engine {
	HANDLE process;
	HANDLE to;   /* a pipe: its end asks the helper to stop */
	HANDLE from; /* a pipe of the stream */
};
#define NO_ENGINE {0, 0, 0}
#else
struct engine {
	int32_t pid;   /* 0: none */
	int32_t pidfd; /* -1: the kernel does not support it */
	long socket;   /* of the stream */
};
#define NO_ENGINE {0, -1, -1}
/* sw_child calls f with arg in a new process that shares this one's memory. Its stack ends at top. sw_child
 * returns when the process has called exec or ended, with the process's number or -errno. */
long sw_child(int (*f)(void *), void *top, long flags, void *arg, int32_t *pidfd);
#endif

enum { NOT_YET = -1 };

/* sw_spawn starts the tool at path, and returns 0 or the system's error. On Linux the helper is an orphan: the
 * program gets no SIGCHLD, and its waits do not see it. Only a program that adopts orphans (process 1 of a
 * container, or a subreaper) becomes its parent. */
int sw_spawn(const char *path, uint32_t rate, uint32_t flags, struct engine *out);
int sw_share(struct engine *e); /* shares memory with the helper: 0, -1 no memory, -2 the helper has ended */
/* sw_receive reads what the helper has sent. It returns the number of bytes, NOT_YET if there are none, or 0
 * if the helper has ended. */
long sw_receive(struct engine *e, void *to, size_t room);
/* sw_look resumes a thread that a helper had suspended when it ended. Until then, no lock is safe: that thread
 * may hold it. */
void sw_look(struct engine *e);
void sw_finish(struct engine *e);  /* asks the helper to stop */
void sw_release(struct engine *e); /* ends the helper, if that is possible, and forgets it */

/* keep_linux.c: a file that takes copies when there is no helper. */
/* sw_keep makes the file. why says why there is no helper, and becomes a part of seedwalk_sampler_problem. */
int sw_keep(const char *path, const char *why);
/* sw_keep_copy copies the calling thread. The caller has checked that this process opened the sampler. */
int sw_keep_copy(const struct sw_at *at, const struct kept *k);
uint64_t sw_keep_missed(void); /* copies for which the file had no room */
void sw_keep_end(void);        /* writes nothing more into the file, and leaves it */
void sw_keep_forked(void);     /* the same in a forked child, for the parent's file */

/* stream.c: the engine's messages (report/wire). */
enum { MAX_PAYLOAD = (1 << 21) - 1, MAX_FRAMES = 1 << 15, MAX_IDS = 1 << 20, MAX_TEXT = 64 << 20, MAX_THREADS = 4096, VERSION = 1 };

enum event { NONE, STACK, BYE, MALFORMED, NO_MEMORY };

struct stream {
	uint8_t *bytes;       /* received, not yet decoded: [from, to) */
	size_t from, to, room;
	struct named *methods; /* by id */
	struct image *images;
	struct label *threads;
	uint32_t method_room, image_room, thread_count;
	struct text *texts;   /* of all names */
	uint64_t text_bytes;
	int greeted;    /* the engine has sent its first message */
	char note[400]; /* the last note to the user */
	char bye[400];
	seedwalk_stack stack; /* the last decoded stack, and its arrays */
	seedwalk_named_frame *frames;
	uint64_t *addresses;
	uint32_t frame_room;
};

/* sw_decode decodes messages until there is something for the caller. */
enum event sw_decode(struct stream *s);
/* sw_room makes room for more bytes, and returns how many fit. */
size_t sw_room(struct stream *s);
void sw_stream_reset(struct stream *s);

#endif

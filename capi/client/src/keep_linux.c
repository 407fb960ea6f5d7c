/* Keeps copies in a file when there is no helper. The file has the layout of the memory that the probe shares
 * with the helper (probe.h), without the room for reads at its end. No copy wraps around, because none is ever
 * freed. `seedwalk stack --copies` walks the copies. */
#include "client.h"

#include <errno.h>
#include <stdio.h>

void sw_problem(const char *what); /* capi/errors.c */

#if defined(__x86_64__)
enum { NR_write = 1, NR_create = 257, NR_unlinkat = 263 };
#else
enum { NR_write = 64, NR_create = 56, NR_unlinkat = 35 };
#endif

enum { FILE_SIZE = SW_BEFORE_RING + SW_RING_SIZE, HERE = -100 /* AT_FDCWD */ };

static struct sw_header *kept; /* null: nothing is kept */
static uint32_t copying;       /* threads that may write there */

/* fill writes zeros, for file systems that cannot reserve space. */
static long fill(int fd)
{
	static const char zeros[4096];
	for (long at = 0; at < FILE_SIZE;) {
		long n = sys3(NR_write, fd, P(zeros), FILE_SIZE - at < (long)sizeof zeros ? FILE_SIZE - at : (long)sizeof zeros);
		if (n <= 0 && n != -EINTR)
			return n ? n : -ENOSPC;
		at += n > 0 ? n : 0;
	}
	return 0;
}

/* reserve gives the file all of its space. Without it, a write into the mapping could end the process by
 * SIGBUS on a full disk. */
static long reserve(int fd)
{
	long e;
	for (int tries = 0; (e = sys6(NR_fallocate, fd, 0, 0, FILE_SIZE, 0, 0)) == -EINTR && tries < 100; tries++)
		;
	return e == -EOPNOTSUPP || e == -ENOSYS ? fill(fd) : e;
}

int sw_keep(const char *path, const char *why)
{
	char line[400];
	const char *what = "make";
	int fd = (int)sys6(NR_create, HERE, P(path), 02 | 0100 | 0200 | 02000000 /* O_RDWR, CREAT, EXCL, CLOEXEC */, 0600, 0, 0);
	long e = fd;
	if (fd >= 0) {
		what = "reserve the space of";
		if (!(e = reserve(fd))) {
			what = "map";
			e = sys6(NR_mmap, 0, FILE_SIZE, 3 /* READ, WRITE */, 1 | 0x8000 /* SHARED, POPULATE */, fd, 0);
		}
		sys3(NR_close, fd, 0, 0);
		if (e < 0 && e > -4096)
			sys3(NR_unlinkat, HERE, P(path), 0);
	}
	if (e < 0 && e > -4096) {
		snprintf(line, sizeof line, "cannot %s %s for the copies: %s; %s", what, path, strerror((int)-e), why);
		sw_problem(line);
		return SEEDWALK_SYSTEM;
	}
	snprintf(line, sizeof line, "copies are kept in %s; %s", path, why);
	sw_problem(line);
	sw_describe((struct sw_header *)e);
	__atomic_store_n(&kept, (struct sw_header *)e, __ATOMIC_SEQ_CST);
	return SEEDWALK_OK;
}

int sw_keep_copy(const struct sw_at *at, const struct kept *k)
{
	int e = SEEDWALK_NOT_OPEN;
	__atomic_fetch_add(&copying, 1, __ATOMIC_SEQ_CST);
	struct sw_header *h = __atomic_load_n(&kept, __ATOMIC_SEQ_CST);
	if (h)
		e = sw_take(h, at, 0, 0, k) ? SEEDWALK_OK : SEEDWALK_FULL;
	__atomic_fetch_sub(&copying, 1, __ATOMIC_SEQ_CST);
	return e;
}

uint64_t sw_keep_missed(void) { return kept ? __atomic_load_n(&kept->missed, __ATOMIC_RELAXED) : 0; }

/* A thread that does not finish its copy leaves the file mapped. */
void sw_keep_end(void)
{
	enum { PATIENCE = 100 };
	int64_t step[2] = {0, 1000000};
	struct sw_header *h = __atomic_exchange_n(&kept, 0, __ATOMIC_SEQ_CST);
	for (int i = 0; h && i < PATIENCE; i++, sys3(NR_nanosleep, P(step), 0, 0))
		if (!__atomic_load_n(&copying, __ATOMIC_SEQ_CST)) {
			sys3(NR_munmap, P(h), FILE_SIZE, 0);
			return;
		}
}

void sw_keep_forked(void)
{
	__atomic_store_n(&copying, 0, __ATOMIC_SEQ_CST);
	sw_keep_end();
}

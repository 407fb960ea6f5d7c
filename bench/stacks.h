// Reads the files that package capture describes. All peers written in C include this header. A peer is one C
// file, so everything here is static.
//
// Sources: package capture; System V ABI, AMD64 supplement, the register number mapping (DWARF's
// numbers of the registers).
#ifndef SEEDWALK_BENCH_STACKS_H
#define SEEDWALK_BENCH_STACKS_H
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// run is a contiguous part of the thread's memory.
struct run {
	uint64_t addr, size;
	const uint8_t *data;
};

// recorded is one stack of the file.
struct recorded {
	uint64_t set; // index of its modules
	uint64_t limit; // most frames to walk
	uint64_t rip, gpr[16]; // as machine code encodes them
	uint64_t nruns;
	struct run *runs;
};

static const uint8_t *input, *input_end; // what is left of the file

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(2);
}

static const uint8_t *take(uint64_t n)
{
	const uint8_t *p = input;
	if (n > (uint64_t)(input_end - input))
		die("the file is cut");
	input += n;
	return p;
}

static uint64_t word(void)
{
	uint64_t v;
	memcpy(&v, take(8), 8);
	return v;
}

// text reads a string. It is never freed.
static char *text(void)
{
	uint64_t n = word();
	char *s = strndup((const char *)take(n), n);
	if (!s)
		die("out of memory");
	return s;
}

// array allocates count items of size. Each item takes at least one byte in the file, so a larger count
// is refused.
static void *array(uint64_t count, size_t size)
{
	void *p;
	if (count > (uint64_t)(input_end - input))
		die("a count is larger than the file");
	p = calloc(count + 1, size);
	if (!p)
		die("out of memory");
	return p;
}

// map_file maps a file. It returns NULL if the file is empty, not regular, or unreadable.
static const uint8_t *map_file(const char *path, size_t *size)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = MAP_FAILED;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return NULL;
	*size = (size_t)st.st_size;
	return p;
}

// open_stacks maps the file and checks its signature.
static void open_stacks(const char *path)
{
	size_t size;
	input = map_file(path, &size);
	if (!input)
		die("cannot read the file");
	input_end = input + size;
	if (memcmp(take(8), "SWSTACK1", 8))
		die("not a file of stacks");
}

static void read_recorded(struct recorded *s, uint64_t nsets)
{
	s->set = word();
	if (s->set >= nsets)
		die("a stack names no set of modules");
	s->limit = word();
	s->rip = word();
	for (int i = 0; i < 16; i++)
		s->gpr[i] = word();
	s->nruns = word();
	s->runs = array(s->nruns, sizeof *s->runs);
	for (uint64_t i = 0; i < s->nruns; i++) {
		s->runs[i].addr = word();
		s->runs[i].size = word();
		s->runs[i].data = take(s->runs[i].size);
	}
}

// recorded_register returns a general register by its DWARF number, at most 15.
static uint64_t recorded_register(const struct recorded *s, int dwarf)
{
	static const int order[16] = { 0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
	return s->gpr[order[dwarf]];
}

// recorded_word reads eight bytes of the thread's memory. It returns 0 if they were not recorded.
static int recorded_word(const struct recorded *s, uint64_t addr, uint64_t *v)
{
	for (uint64_t i = 0; i < s->nruns; i++) {
		uint64_t off = addr - s->runs[i].addr;
		if (s->runs[i].size >= 8 && off <= s->runs[i].size - 8) {
			memcpy(v, s->runs[i].data + off, 8);
			return 1;
		}
	}
	return 0;
}

static uint64_t now(void) // in ns
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#endif

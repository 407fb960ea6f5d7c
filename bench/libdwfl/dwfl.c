// Walks recorded stacks with elfutils' libdwfl: a peer of our own walker over the
// same bytes.
//
// Sources: elfutils' libdwfl.h (dwfl_attach_state, dwfl_getthread_frames).
//
// Usage: as bench/libunwind/peer.c; libdwfl keeps what it has parsed, so that each
// mode is the same to it.
//
// Known gaps: the number of a file's images that are mapped twice is one.
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct run {
	uint64_t addr, size;
	const uint8_t *data;
};

struct stack {
	Dwfl *dwfl;
	uint64_t limit, rip, gpr[16], nruns;
	struct run *runs;
};

static const uint8_t *input, *input_end;
static const struct stack *now_walking;

static void die(const char *what)
{
	fprintf(stderr, "dwfl: %s\n", what);
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

static int no_debug(Dwfl_Module *m, void **u, const char *name, Dwarf_Addr base, const char *file, const char *link,
		    GElf_Word crc, char **out)
{
	(void)m, (void)u, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)out;
	return -1;
}

static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_build_id_find_elf, .find_debuginfo = no_debug };

static pid_t next_thread(Dwfl *d, void *arg, void **thread)
{
	(void)d, (void)arg;
	if (*thread)
		return 0;
	*thread = (void *)1;
	return 1;
}

static bool get_thread(Dwfl *d, pid_t tid, void *arg, void **thread)
{
	(void)d, (void)tid, (void)arg;
	*thread = (void *)1;
	return true;
}

static bool memory_read(Dwfl *d, Dwarf_Addr addr, Dwarf_Word *v, void *arg)
{
	const struct stack *s = now_walking;
	(void)d, (void)arg;
	for (uint64_t i = 0; i < s->nruns; i++) {
		uint64_t off = addr - s->runs[i].addr;
		if (s->runs[i].size >= 8 && off <= s->runs[i].size - 8) {
			memcpy(v, s->runs[i].data + off, 8);
			return true;
		}
	}
	return false;
}

static bool set_registers(Dwfl_Thread *t, void *arg)
{
	// The encodings' order in that of DWARF.
	static const int order[16] = { 0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15 };
	Dwarf_Word regs[17];
	(void)arg;
	for (int i = 0; i < 16; i++)
		regs[i] = now_walking->gpr[order[i]];
	regs[16] = now_walking->rip;
	return dwfl_thread_state_registers(t, 0, 17, regs);
}

static const Dwfl_Thread_Callbacks threads = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

static Dwfl *read_set(void)
{
	uint64_t count = word(), last_bias = 0;
	char *last = NULL;
	Dwfl *d = dwfl_begin(&callbacks);
	if (!d)
		die(dwfl_errmsg(-1));
	dwfl_report_begin(d);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t bias, n;
		char *path;
		take(16);
		bias = word();
		n = word();
		path = strndup((const char *)take(n), n);
		take(word()); // the build id
		if ((!last || strcmp(last, path) || last_bias != bias) && path[0] == '/')
			dwfl_report_elf(d, path, path, -1, bias, true);
		last = path;
		last_bias = bias;
	}
	dwfl_report_end(d, NULL, NULL);
	if (count && !dwfl_attach_state(d, NULL, 1, &threads, NULL))
		die(dwfl_errmsg(-1));
	return d;
}

static void read_stack(struct stack *s, Dwfl **sets, uint64_t nsets)
{
	uint64_t set = word();
	if (set >= nsets)
		die("a stack names no set");
	s->dwfl = sets[set];
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

struct count {
	uint64_t n;
	int print;
};

static int frame(Dwfl_Frame *f, void *arg)
{
	struct count *c = arg;
	Dwarf_Addr pc = 0;
	Dwarf_Word sp = 0;
	if (!dwfl_frame_pc(f, &pc, NULL))
		return DWARF_CB_ABORT;
	c->n++;
	if (c->print) {
		dwfl_frame_reg(f, 7, &sp);
		printf("%" PRIx64 " %" PRIx64 " 1\n", (uint64_t)pc, (uint64_t)sp);
	}
	return c->n < now_walking->limit ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static uint64_t walk(const struct stack *s, int print)
{
	struct count c = { 0, print };
	now_walking = s;
	dwfl_getthread_frames(s->dwfl, 1, frame, &c);
	return c.n;
}

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void bench(const struct stack *stacks, uint64_t n)
{
	char mode;
	unsigned rounds;
	while (scanf(" %c %u", &mode, &rounds) == 2) {
		uint64_t frames = 0, begin = now();
		for (unsigned r = 0; r < rounds; r++)
			for (uint64_t i = 0; i < n; i++)
				frames += walk(&stacks[i], 0);
		printf("%" PRIu64 " %" PRIu64 "\n", now() - begin, frames);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int timing = argc == 3 && !strcmp(argv[1], "--bench"), fd;
	struct stat st;
	uint64_t nsets, nstacks;
	Dwfl **sets;
	struct stack *stacks;
	if (argc != 2 + timing)
		die("usage: dwfl [--bench] FILE");
	fd = open(argv[argc - 1], O_RDONLY);
	if (fd < 0 || fstat(fd, &st) || st.st_size < 8)
		die("cannot read the file");
	input = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (input == MAP_FAILED)
		die("cannot map the file");
	input_end = input + st.st_size;
	if (memcmp(take(8), "SWSTACK1", 8))
		die("not a file of stacks");
	nsets = word();
	sets = array(nsets, sizeof *sets);
	for (uint64_t i = 0; i < nsets; i++)
		sets[i] = read_set();
	nstacks = word();
	stacks = array(nstacks, sizeof *stacks);
	for (uint64_t i = 0; i < nstacks; i++)
		read_stack(&stacks[i], sets, nsets);
	if (timing) {
		bench(stacks, nstacks);
		return 0;
	}
	for (uint64_t i = 0; i < nstacks; i++) {
		printf("walk %" PRIu64 "\n", i);
		walk(&stacks[i], 1);
	}
	return 0;
}

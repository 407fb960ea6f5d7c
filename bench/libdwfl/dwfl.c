// Walks recorded stacks with elfutils' libdwfl: a peer of our own walker over the
// same bytes.
//
// Sources: elfutils' libdwfl.h (dwfl_attach_state, dwfl_getthread_frames).
//
// Usage: as bench/libunwind/peer.c. libdwfl keeps what it has parsed, so all modes measure the same.
//
// Known gaps: a file that is mapped twice at one bias is reported once.
#define _GNU_SOURCE
#include "../stacks.h"
#include <elfutils/libdwfl.h>
#include <inttypes.h>

struct stack {
	struct recorded at;
	Dwfl *dwfl;
};

static const struct stack *now_walking;

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
	uint64_t word;
	(void)d, (void)arg;
	if (!recorded_word(&now_walking->at, addr, &word))
		return false;
	*v = word;
	return true;
}

static bool set_registers(Dwfl_Thread *t, void *arg)
{
	Dwarf_Word regs[17];
	(void)arg;
	for (int i = 0; i < 16; i++)
		regs[i] = recorded_register(&now_walking->at, i);
	regs[16] = now_walking->at.rip;
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
		uint64_t bias;
		char *path;
		take(16);
		bias = word();
		path = text();
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
	return c->n < now_walking->at.limit ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static uint64_t walk(const struct stack *s, int print)
{
	struct count c = { 0, print };
	now_walking = s;
	dwfl_getthread_frames(s->dwfl, 1, frame, &c);
	return c.n;
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
	int timing = argc == 3 && !strcmp(argv[1], "--bench");
	uint64_t nsets, nstacks;
	Dwfl **sets;
	struct stack *stacks;
	if (argc != 2 + timing)
		die("usage: dwfl [--bench] FILE");
	open_stacks(argv[argc - 1]);
	nsets = word();
	sets = array(nsets, sizeof *sets);
	for (uint64_t i = 0; i < nsets; i++)
		sets[i] = read_set();
	nstacks = word();
	stacks = array(nstacks, sizeof *stacks);
	for (uint64_t i = 0; i < nstacks; i++) {
		read_recorded(&stacks[i].at, nsets);
		stacks[i].dwfl = sets[stacks[i].at.set];
	}
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

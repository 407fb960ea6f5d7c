// Walks recorded stacks with nongnu libunwind, remotely: the peer and second
// opinion of our own walker over the same bytes.
//
// Sources: libunwind's manual (unw_create_addr_space, find_proc_info), and the
// ELF gABI with the LSB's .eh_frame_hdr chapter.
//
// Usage: peer FILE           print each walk: "walk I", then "ip sp info" lines
//        peer --bench FILE   read "w N", "c N" or "n N" lines (N rounds: warm, each
//                            with an empty cache at its start, no cache) and answer
//                            "ns frames"; emptying is not timed
//
// File: that of package capture, which describes it.
//
// Known gaps: modules without a sorted .eh_frame_hdr are not found.
#define _GNU_SOURCE
#include "../stacks.h"
#include <elf.h>
#include <inttypes.h>
#include <libunwind-x86_64.h>

// The one entry point its headers leave out; perf uses it the same way.
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *,
					      unw_proc_info_t *, int, void *);

struct image {
	const uint8_t *data; // NULL: unreadable
	size_t size;
	const char *path;
};

struct module {
	uint64_t start, end, bias;
	struct image *image;
	unw_dyn_info_t info;
	int has_info;
};

struct set {
	size_t count;
	struct module *modules;
};

struct walk {
	struct recorded at;
	struct set *set;
	int found; // did the last look-up find unwind data?
	struct module *current; // of the last look-up: its tables lie outside [start, end) of its code
};

static struct image *images;
static size_t nimages;

static struct image *image_of(const char *path)
{
	for (size_t i = 0; i < nimages; i++)
		if (!strcmp(images[i].path, path))
			return &images[i];
	if (nimages == 4096)
		die("too many images");
	images[nimages].path = path;
	images[nimages].data = map_file(path, &images[nimages].size);
	return &images[nimages++];
}

static const Elf64_Phdr *headers(const struct image *im, size_t *count)
{
	const Elf64_Ehdr *h = (const void *)im->data;
	*count = 0;
	if (!im->data || im->size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_machine != EM_X86_64 ||
	    h->e_phoff > im->size || h->e_phnum > (im->size - h->e_phoff) / sizeof(Elf64_Phdr))
		return NULL;
	*count = h->e_phnum;
	return (const void *)(im->data + h->e_phoff);
}

// bytes finds n bytes at a virtual address in the file.
static const uint8_t *bytes(const struct image *im, uint64_t vaddr, uint64_t n)
{
	size_t count;
	const Elf64_Phdr *p = headers(im, &count);
	for (size_t i = 0; i < count; i++) {
		uint64_t off = vaddr - p[i].p_vaddr;
		if (p[i].p_type != PT_LOAD || off >= p[i].p_filesz || n > p[i].p_filesz - off)
			continue;
		if (p[i].p_offset > im->size || off + n > im->size - p[i].p_offset)
			return NULL;
		return im->data + p[i].p_offset + off;
	}
	return NULL;
}

// find_table fills the unwind table libunwind searches: .eh_frame_hdr with its
// usual encodings, a 32-bit count and 32-bit pairs relative to the header.
static void find_table(struct module *m)
{
	size_t count;
	const Elf64_Phdr *p = headers(m->image, &count);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *h;
		uint32_t n;
		if (p[i].p_type != PT_GNU_EH_FRAME)
			continue;
		h = bytes(m->image, p[i].p_vaddr, 12);
		if (!h || h[0] != 1 || (h[1] & 15) != 0x0b || h[2] != 0x03 || h[3] != 0x3b)
			return;
		memcpy(&n, h + 8, 4);
		m->info.format = UNW_INFO_FORMAT_REMOTE_TABLE;
		m->info.start_ip = m->start;
		m->info.end_ip = m->end;
		m->info.u.rti.segbase = m->bias + p[i].p_vaddr;
		m->info.u.rti.table_data = m->info.u.rti.segbase + 12;
		m->info.u.rti.table_len = (unw_word_t)n * 8 / sizeof(unw_word_t);
		m->has_info = 1;
	}
}

static void read_set(struct set *s)
{
	s->count = word();
	s->modules = array(s->count, sizeof *s->modules);
	for (size_t i = 0; i < s->count; i++) {
		struct module *m = &s->modules[i];
		m->start = word();
		m->end = word();
		m->bias = word();
		m->image = image_of(text());
		take(word()); // the build id
		find_table(m);
	}
}

static struct module *module_of(struct set *s, uint64_t addr)
{
	size_t lo = 0, hi = s->count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (s->modules[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < s->modules[lo - 1].end ? &s->modules[lo - 1] : NULL;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need, void *arg)
{
	struct walk *w = arg;
	struct module *m = module_of(w->set, ip);
	int err = -UNW_ENOINFO;
	w->current = m;
	if (m && m->has_info)
		err = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &m->info, pi, need, arg);
	w->found = err == 0;
	return err;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as, (void)pi, (void)arg;
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *addr, void *arg)
{
	(void)as, (void)addr, (void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *v, int write, void *arg)
{
	struct walk *w = arg;
	struct module *m;
	const uint8_t *p;
	uint64_t word;
	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (recorded_word(&w->at, addr, &word)) {
		*v = word;
		return 0;
	}
	m = w->current;
	p = m ? bytes(m->image, addr - m->bias, 8) : NULL;
	if (!p && (m = module_of(w->set, addr)))
		p = bytes(m->image, addr - m->bias, 8);
	if (!p)
		return -UNW_EINVAL;
	memcpy(v, p, 8);
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *v, int write, void *arg)
{
	struct walk *w = arg;
	(void)as;
	if (write || reg < 0 || reg > UNW_X86_64_RIP)
		return -UNW_EBADREG;
	*v = reg == UNW_X86_64_RIP ? w->at.rip : recorded_register(&w->at, reg); // libunwind counts as DWARF does
	return 0;
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *v, int write, void *arg)
{
	(void)as, (void)reg, (void)v, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as, (void)c, (void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t n, unw_word_t *off, void *arg)
{
	(void)as, (void)ip, (void)buf, (void)n, (void)off, (void)arg;
	return -UNW_ENOINFO;
}

static unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.put_unwind_info = put_unwind_info,
	.get_dyn_info_list_addr = no_dyn_info,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = no_fpreg,
	.resume = no_resume,
	.get_proc_name = no_name,
};

// step_all walks one stack and returns its number of frames. Printing says of
// each frame whether unwind data was found to leave it.
static uint64_t step_all(unw_addr_space_t as, struct walk *w, int print)
{
	unw_cursor_t c;
	uint64_t n = 0;
	int more = unw_init_remote(&c, as, w) == 0;
	while (more && n < w->at.limit) {
		unw_word_t ip = 0, sp = 0;
		unw_get_reg(&c, UNW_X86_64_RIP, &ip);
		unw_get_reg(&c, UNW_X86_64_RSP, &sp);
		n++;
		w->found = 0;
		more = unw_step(&c) > 0;
		if (print)
			printf("%" PRIx64 " %" PRIx64 " %d\n", (uint64_t)ip, (uint64_t)sp, w->found);
	}
	return n;
}

// timed walks everything once and adds up the time in *ns.
static uint64_t timed(unw_addr_space_t as, struct walk *walks, uint64_t n, uint64_t *ns)
{
	uint64_t frames = 0, begin = now();
	for (uint64_t i = 0; i < n; i++)
		frames += step_all(as, &walks[i], 0);
	*ns += now() - begin;
	return frames;
}

static void bench(unw_addr_space_t as, struct walk *walks, uint64_t n)
{
	char mode;
	unsigned rounds;
	while (scanf(" %c %u", &mode, &rounds) == 2) {
		uint64_t frames = 0, ns = 0;
		unw_set_caching_policy(as, mode == 'n' ? UNW_CACHE_NONE : UNW_CACHE_GLOBAL);
		// What was emptied is cleared in the next walk, which is timed: a
		// cold round has the default size, with which libunwind is faster.
		unw_set_cache_size(as, mode == 'w' ? 16384 : 128, 0);
		for (unsigned r = 0; r < rounds; r++) {
			if (mode == 'c')
				unw_flush_cache(as, 0, 0);
			frames += timed(as, walks, n, &ns);
		}
		printf("%" PRIu64 " %" PRIu64 "\n", ns, frames);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int timing = argc == 3 && !strcmp(argv[1], "--bench");
	uint64_t nsets, nwalks;
	struct set *sets;
	struct walk *walks;
	unw_addr_space_t as;
	if (argc != 2 + timing)
		die("usage: peer [--bench] FILE");
	open_stacks(argv[argc - 1]);
	images = calloc(4096, sizeof *images);
	nsets = word();
	sets = array(nsets, sizeof *sets);
	for (uint64_t i = 0; i < nsets; i++)
		read_set(&sets[i]);
	nwalks = word();
	walks = array(nwalks, sizeof *walks);
	for (uint64_t i = 0; i < nwalks; i++) {
		read_recorded(&walks[i].at, nsets);
		walks[i].set = &sets[walks[i].at.set];
	}
	as = unw_create_addr_space(&accessors, 0);
	if (!as)
		die("no address space");
	// Printing uses no cache, because the found mark comes from the look-up. Timing
	// gives libunwind its best case: a cache that holds everything.
	unw_set_caching_policy(as, UNW_CACHE_NONE);
	if (timing) {
		// libunwind 1.6 makes its cache at the first cached walk, and then
		// with the default size of 128, whatever was set before.
		uint64_t ns = 0;
		unw_set_caching_policy(as, UNW_CACHE_GLOBAL);
		timed(as, walks, nwalks != 0, &ns);
		bench(as, walks, nwalks);
		return 0;
	}
	for (uint64_t i = 0; i < nwalks; i++) {
		printf("walk %" PRIu64 "\n", i);
		step_all(as, &walks[i], 1);
	}
	return 0;
}

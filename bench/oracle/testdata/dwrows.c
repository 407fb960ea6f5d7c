// Prints rows of call frame information as libdw (elfutils) has them: the
// second opinion on package cfi.
//
// Sources: elfutils' own libdw.h; DWARF 5 section 6.4.
//
// Usage: dwrows FILE eh|debug MACHINE   (.eh_frame or .debug_frame)
//
// MACHINE is the e_machine that libdw is made to see, -1 for the file's own: it
// has a default row for each machine that hides what the records say, and
// another machine has another one.
//
// First every record of the section is listed, then one line of answer follows
// for each line of input, a virtual address in hex:
//
//	record OFFSET cie|fde             OFFSET from the section's start, hex
//	end STATUS                        0: the whole section was read
//	ADDR START END RA SIGNAL CFA N=RULE...
//	ADDR error MESSAGE
//
// RULE: u undefined, s same value, o+N saved at CFA+N, v+N value CFA+N, rN in
// register N, eOPS saved at an expression's address, wOPS an expression's value.
// u and s hold for the registers that follow too, until the other of them, but
// for those with another rule; without either it is u. CFA: rN+N, eOPS, none.
// OPS: opcode:operand:operand, each in hex, joined by commas, without the CFA
// that libdw puts in front and the DW_OP_stack_value behind.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REGISTERS = 128 }; // asked for; more than any row of ours keeps

static void die(const char *what)
{
	fprintf(stderr, "dwrows: %s\n", what);
	exit(2);
}

// open_elf maps the file privately, so that its machine can be changed.
static Elf *open_elf(const char *path, int machine)
{
	struct stat st;
	Elf64_Ehdr *image;
	Elf *elf;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || (size_t)st.st_size < sizeof(*image))
		die("cannot open the file");
	image = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	if (image == MAP_FAILED)
		die("cannot map the file");
	if (image->e_ident[EI_CLASS] != ELFCLASS64)
		die("not a 64-bit ELF file");
	if (machine >= 0)
		image->e_machine = (Elf64_Half)machine;
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)image, (size_t)st.st_size);
	if (!elf)
		die(elf_errmsg(-1));
	return elf;
}

static Elf_Data *find_section(Elf *elf, const char *name)
{
	size_t names;
	Elf_Scn *scn = NULL;
	if (elf_getshdrstrndx(elf, &names) != 0)
		die(elf_errmsg(-1));
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		GElf_Shdr shdr;
		const char *s;
		if (!gelf_getshdr(scn, &shdr))
			die(elf_errmsg(-1));
		s = elf_strptr(elf, names, shdr.sh_name);
		if (!s || strcmp(s, name) != 0)
			continue;
		if ((shdr.sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
			die(elf_errmsg(-1));
		return elf_rawdata(scn, NULL);
	}
	return NULL;
}

static void list_records(Elf *elf, const char *section, bool eh)
{
	Elf_Data *data = find_section(elf, section);
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	Dwarf_Off off = 0, next;
	Dwarf_CFI_Entry entry;
	int status;
	if (!data)
		die("no such section");
	while ((status = dwarf_next_cfi(ident, data, eh, off, &next, &entry)) == 0) {
		printf("record %" PRIx64 " %s\n", off, dwarf_cfi_cie_p(&entry) ? "cie" : "fde");
		off = next;
	}
	printf("end %d\n", status == 1 ? 0 : status);
	fflush(stdout); // our reader asks nothing before it has seen this
}

static void print_ops(char kind, const Dwarf_Op *ops, size_t n)
{
	putchar(kind);
	for (size_t i = 0; i < n; i++)
		printf("%s%x:%" PRIx64 ":%" PRIx64, i ? "," : "", ops[i].atom, ops[i].number, ops[i].number2);
}

static void print_cfa(Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t n;
	if (dwarf_frame_cfa(frame, &ops, &n) != 0)
		printf(" error(%s)", dwarf_errmsg(-1));
	else if (n == 0)
		printf(" none");
	else if (n == 1 && ops[0].atom == DW_OP_bregx)
		printf(" r%" PRIu64 "%+" PRId64, ops[0].number, (int64_t)ops[0].number2);
	else {
		putchar(' ');
		print_ops('e', ops, n);
	}
}

// print_rule takes the operations apart again that libdw makes of a rule. It
// uses its caller's array for every rule that is no expression. Returns the u or
// s that holds for the next register.
static char print_rule(Dwarf_Frame *frame, int reg, char fill)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	bool value;
	if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0) {
		printf(" %d=error(%s)", reg, dwarf_errmsg(-1));
		return fill;
	}
	if (n == 0) {
		char kind = ops ? 'u' : 's';
		if (kind != fill)
			printf(" %d=%c", reg, kind);
		return kind;
	}
	printf(" %d=", reg);
	if (ops == mem && ops[0].atom == DW_OP_regx) {
		printf("r%" PRIu64, ops[0].number);
		return fill;
	}
	value = ops[n - 1].atom == DW_OP_stack_value;
	if (ops[0].atom != DW_OP_call_frame_cfa)
		die("a rule without a CFA");
	if (ops != mem) {
		print_ops(value ? 'w' : 'e', ops + 1, n - 1 - value);
		return fill;
	}
	printf("%c%+" PRId64, value ? 'v' : 'o', n > 1u + value ? (int64_t)ops[1].number : 0);
	return fill;
}

static void answer(Dwarf_CFI *cfi, Dwarf_Addr addr)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	bool signal;
	int ra;
	char fill = 'u';
	if (dwarf_cfi_addrframe(cfi, addr, &frame) != 0) {
		printf("%" PRIx64 " error %s\n", addr, dwarf_errmsg(-1));
		return;
	}
	ra = dwarf_frame_info(frame, &start, &end, &signal);
	printf("%" PRIx64 " %" PRIx64 " %" PRIx64 " %d %d", addr, start, end, ra, signal);
	print_cfa(frame);
	for (int reg = 0; reg < REGISTERS; reg++)
		fill = print_rule(frame, reg, fill);
	putchar('\n');
	free(frame);
}

int main(int argc, char **argv)
{
	Dwarf_CFI *cfi;
	Dwarf *dwarf = NULL;
	Elf *elf;
	uint64_t addr;
	bool eh;
	if (argc != 4)
		die("usage: dwrows FILE eh|debug MACHINE");
	eh = strcmp(argv[2], "eh") == 0;
	elf = open_elf(argv[1], atoi(argv[3]));
	if (eh) {
		cfi = dwarf_getcfi_elf(elf);
	} else {
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
		cfi = dwarf ? dwarf_getcfi(dwarf) : NULL;
	}
	if (!cfi)
		die(dwarf_errmsg(-1));
	list_records(elf, eh ? ".eh_frame" : ".debug_frame", eh);
	while (scanf("%" SCNx64, &addr) == 1)
		answer(cfi, addr);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 2;
}

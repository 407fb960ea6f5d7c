// Maps an image that lies in a file as it lies in memory, and runs its entry
// point: peload FILE BASE ENTRY, numbers in hex.
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define MICROSOFT __attribute__((ms_abi))
#else
#define MICROSOFT /* as Linux has it */
#endif
typedef uint64_t(MICROSOFT *entry)(uint64_t);

int main(int argc, char **argv)
{
	struct stat st;
	int fd = argc == 4 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return 2;
	char *base = (char *)strtoull(argv[2], NULL, 16);
	if (mmap(base, (size_t)st.st_size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) != base)
		return 3;
	entry run = (entry)(base + strtoull(argv[3], NULL, 16));
	volatile uint64_t sum = 0;
	for (uint64_t i = 0; i < 3; i++)
		sum += run(i);
	return 0;
}

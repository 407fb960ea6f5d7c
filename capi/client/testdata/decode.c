/* decode SIZE FILE...: decodes each file as the client does, in pieces of SIZE bytes, and prints its
 * contents; the name before them if there are more files. */
#include "../src/client.h"

#include <stdio.h>
#include <stdlib.h>

static void show(const seedwalk_stack *s)
{
	printf("stack %llu %llu %llu %llu tag %llu gap %d doubtful %d \"%s\"\n", (unsigned long long)s->os_thread, (unsigned long long)s->time_ns,
	       (unsigned long long)s->wall_ns, (unsigned long long)s->cpu_ns, (unsigned long long)s->tag, s->gap, s->doubtful, s->thread_name);
	for (int i = 0; i < s->count; i++) {
		const seedwalk_named_frame *f = s->frames + i;
		printf(" %d %d %d %d %llx %llx %d \"%s\" \"%s\" \"%s\" %llx\n", f->frame.kind, f->frame.trust, f->frame.gap, f->frame.exact, (unsigned long long)f->frame.ip,
		       (unsigned long long)f->frame.function, f->frame.module, f->method, f->path, f->build_id, (unsigned long long)s->addresses[i]);
	}
}

static int decode(const char *path, size_t piece)
{
	static struct stream s;
	size_t n = 1;
	FILE *f = fopen(path, "r");
	while (f && n) {
		enum event e;
		while ((e = sw_decode(&s)) == STACK)
			show(&s.stack);
		if (e != NONE) {
			printf("end %d %s %s\n", e, s.note, s.bye);
			break;
		}
		size_t room = sw_room(&s);
		n = fread(s.bytes + s.to, 1, room < piece ? room : piece, f);
		s.to += n;
	}
	sw_stream_reset(&s);
	return !f || fclose(f);
}

int main(int argc, char **argv)
{
	size_t piece = (size_t)atol(argv[1]);
	int failed = 0;
	for (int i = 2; i < argc && !failed; i++) {
		if (argc > 3) {
			printf("file %s\n", argv[i]);
			fflush(stdout);
		}
		failed = decode(argv[i], piece);
	}
	return failed;
}

/* Symbols of glibc that Debian's libstdc++ and libgcc need and musl lacks, under the name of glibc's
 * loader. With them a .NET program for musl runs on Debian's musl. */
#include <stddef.h>
#include <time.h>
#include <locale.h>

struct { unsigned vendor, type, subtype, features; } __cpu_model;
char __libc_single_threaded;

int _dl_find_object(void *pc, void *found) { return (void)pc, (void)found, -1; } /* libgcc then calls dl_iterate_phdr */
int __cpu_indicator_init(void) { return 0; }
unsigned arc4random(void) { return 4; }
int __cxa_thread_atexit_impl(void (*f)(void *), void *object, void *dso) { return (void)f, (void)object, (void)dso, 0; }

size_t __strftime_l(char *s, size_t n, const char *format, const struct tm *t, locale_t l) { return strftime_l(s, n, format, t, l); }

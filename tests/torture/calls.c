/* Counts the file calls below a folder, and lets the N-th fail, or kills the process there: LD_PRELOAD it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDLES 65536

static long fail_at = -1, seen = 0;
static int fault = 0, dies = 0;
static char below[512] = "", watched[HANDLES];

void calls_watch(long at, int number, const char *folder, int die) {
    fail_at = at, fault = number, seen = 0, dies = die;
    strncpy(below, folder, sizeof below - 1);
    memset(watched, 0, sizeof watched);
}

long calls_seen(void) { return seen; }

static int ours(const char *path) { return below[0] && path && !strncmp(path, below, strlen(below)); }

static int held(int handle) { return handle >= 0 && handle < HANDLES && watched[handle]; }

static int hit(void) {
    if (++seen != fail_at) return 0;
    if (dies) kill(getpid(), SIGKILL);
    errno = fault;
    return 1;
}

#define REAL(name) static __typeof__(&name) real = 0; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define MODE(last) va_list rest; va_start(rest, last); mode_t mode = va_arg(rest, mode_t); va_end(rest)
#define OPENS(name) \
    int name(const char *path, int flags, ...) { \
        MODE(flags); REAL(name); \
        int mine = ours(path); \
        if (mine && hit()) return -1; \
        int handle = real(path, flags, mode); \
        if (handle >= 0 && handle < HANDLES) watched[handle] = mine; \
        return handle; \
    }
#define PATH_CALL(name, arguments, path, given) \
    int name arguments { REAL(name); if (ours(path) && hit()) return -1; return real given; }

OPENS(open)
OPENS(open64)

ssize_t write(int handle, const void *data, size_t size) {
    REAL(write);
    return held(handle) && hit() ? -1 : real(handle, data, size);
}

int fsync(int handle) {
    REAL(fsync);
    return held(handle) && hit() ? -1 : real(handle);
}

int close(int handle) {
    REAL(close);
    int failed = held(handle) && hit(), number = errno;
    if (handle >= 0 && handle < HANDLES) watched[handle] = 0;
    int closed = real(handle);
    if (failed) errno = number;
    return failed ? -1 : closed;
}

int renameat2(int, const char *, int, const char *, unsigned int);

PATH_CALL(rename, (const char *a, const char *b), b, (a, b))
PATH_CALL(renameat2, (int x, const char *a, int y, const char *b, unsigned int how), b, (x, a, y, b, how))
PATH_CALL(link, (const char *a, const char *b), b, (a, b))
PATH_CALL(linkat, (int x, const char *a, int y, const char *b, int how), b, (x, a, y, b, how))
PATH_CALL(unlink, (const char *a), a, (a))
PATH_CALL(rmdir, (const char *a), a, (a))
PATH_CALL(chmod, (const char *a, mode_t mode), a, (a, mode))
PATH_CALL(mkdir, (const char *a, mode_t mode), a, (a, mode))
PATH_CALL(stat, (const char *a, struct stat *b), a, (a, b))
PATH_CALL(lstat, (const char *a, struct stat *b), a, (a, b))

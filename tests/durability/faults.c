/* A disk that fails when it is told to: LD_PRELOAD this with FAULTS naming a file of two ints, the errno that writes
 * end with and the errno that syncs end with, 0 for none. Only files of a store are meant, by their name. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITES, SYNCS };

static const volatile int *faults;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTS");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *map = mmap(NULL, 2 * sizeof(int), PROT_READ, MAP_SHARED, file, 0);
        faults = map == MAP_FAILED ? NULL : map;
        close(file);
    }
}

static int fails(int kind, int file) {
    char link[64], path[4096];
    if (faults == NULL || faults[kind] == 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (strstr(path, "/dragoman.db") == NULL)
        return 0;
    errno = faults[kind];
    return 1;
}

#define WRITE(name, offset)                                                                                           \
    ssize_t name(int file, const void *data, size_t size, offset at) {                                                \
        static ssize_t (*real)(int, const void *, size_t, offset);                                                    \
        if (real == NULL)                                                                                             \
            real = dlsym(RTLD_NEXT, #name);                                                                           \
        return fails(WRITES, file) ? -1 : real(file, data, size, at);                                                 \
    }

#define SYNC(name)                                                                                                    \
    int name(int file) {                                                                                              \
        static int (*real)(int);                                                                                      \
        if (real == NULL)                                                                                             \
            real = dlsym(RTLD_NEXT, #name);                                                                           \
        return fails(SYNCS, file) ? -1 : real(file);                                                                  \
    }

WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)
SYNC(fsync)
SYNC(fdatasync)

#define _GNU_SOURCE
#include "log_file.h"
#include "kernel.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>

/* The size that the first process reserves for a log, and the factor by which it grows. */
#define FIRST_RESERVE (256ULL << 20)
#define GROWTH 4
/* The recorder's own memory for the first threads, mapped at the beginning. */
#define ARENA (4U << 20)
#define MUCH_ROOM (64ULL << 20)
/* Ranges for the number of the kept descriptor. The first is above the numbers that a program gets which
 * opens a few files; the others serve where the program uses these. The last is below the limit on
 * descriptors. */
#define RANGES 4
#define RANGE_SIZE 10

static char path[4096];   /* of the log */
static char folder[4096]; /* of the log */
static struct log_file *header;
static struct statx identity; /* which file it is */
static int kept = -1;
static uint8_t *arena;
static uint32_t arena_used;

extern const char __libc_single_threaded __attribute__((weak));

static int is_same(const struct statx *one, const struct statx *other) {
    return one->stx_ino == other->stx_ino && one->stx_dev_major == other->stx_dev_major &&
           one->stx_dev_minor == other->stx_dev_minor;
}

/* Whether the path still names the log. */
static int has_name(struct statx *status) {
    return kernel_status_of_path(path, status) == 0 && is_same(status, &identity);
}

static int is_the_log(int fd) {
    struct statx status;
    return fd >= 0 && kernel_status(fd, &status) == 0 && is_same(&status, &identity);
}

/* With several threads the recorder opens no descriptor: another thread could replace it by dup2, or fork a
 * child that inherits it. */
static int may_open(void) { return &__libc_single_threaded != NULL && __libc_single_threaded; }

/* Opens the log by its path. -1: another file has that path now. */
static int open_by_name(void) {
    int fd = may_open() ? kernel_open(path, O_RDWR) : -1;
    if (fd >= 0 && !is_the_log(fd)) {
        kernel_close(fd);
        return -1;
    }
    return fd;
}

/* Enlarges the file as far as the limit on file sizes allows; returns its size. */
static uint64_t reserve(uint64_t before, uint64_t wanted) {
    uint64_t limit = kernel_limit(RLIMIT_FSIZE) & ~(uint64_t)(PAGE - 1);
    uint64_t size = wanted < limit ? wanted : limit;
    if (size <= before) {
        return before;
    }
    if (kernel_truncate_path(path, size) == 0) {
        return size;
    }
    if (errno == EFBIG) {
        kernel_take_signal(SIGXFSZ);
    }
    return before;
}

static int is_log(const struct log_file *file) {
    return memcmp(file->magic, LOG_MAGIC, sizeof file->magic) == 0 && file->version == LOG_VERSION &&
           file->page == PAGE && file->chunk == LOG_CHUNK;
}

static uint64_t first_descriptor(unsigned index) {
    static const uint64_t high[RANGES - 1] = {1000, 2000, 4000};
    uint64_t limit = kernel_limit(RLIMIT_NOFILE);
    return index < RANGES - 1 ? high[index] : limit >= 3 * RANGE_SIZE ? limit - RANGE_SIZE : ~0ULL;
}

/* A descriptor of the same file above a number. It stays open across exec. */
static int duplicate(int fd, uint64_t above) {
    for (unsigned i = 0; i < RANGES; i++) {
        uint64_t from = first_descriptor(i);
        if (from > above && from + RANGE_SIZE <= kernel_limit(RLIMIT_NOFILE)) {
            int found = (int)syscall(SYS_fcntl, fd, F_DUPFD, (long)from);
            if (found >= 0) {
                return found;
            }
        }
    }
    return -1;
}

/* The descriptor of a log that an earlier process of this pid kept; of `file`, if that is given. */
static int find_kept(const struct statx *file) {
    for (unsigned i = 0; i < RANGES; i++) {
        uint64_t from = first_descriptor(i);
        for (uint64_t fd = from; fd < from + RANGE_SIZE && fd < INT_MAX; fd++) {
            struct statx status;
            struct log_file found;
            if (kernel_status((int)fd, &status) == 0 && (status.stx_mode & S_IFMT) == S_IFREG &&
                (file == NULL || is_same(&status, file)) &&
                kernel_read_at((int)fd, &found, sizeof found, 0) == sizeof found && is_log(&found)) {
                return (int)fd;
            }
        }
    }
    return -1;
}

/* A private mapping of a file without a name. */
static void *map_nameless(uint64_t size) {
    void *memory = NULL;
    int fd = kernel_limit(RLIMIT_FSIZE) < size ? -1 : kernel_open(folder, O_TMPFILE | O_RDWR);
    if (fd >= 0) {
        if (kernel_truncate(fd, size) == 0) {
            memory = kernel_map(NULL, size, MAP_PRIVATE, fd, 0);
        } else if (errno == EFBIG) {
            kernel_take_signal(SIGXFSZ);
        }
        kernel_close(fd);
    }
    return memory;
}

/* Maps the log's header; the descriptor is not needed afterwards. */
static int use(int fd, int is_kept) {
    if (kernel_status(fd, &identity) != 0) {
        return 0;
    }
    header = kernel_map(NULL, LOG_HEADER, MAP_SHARED, fd, 0);
    if (header == NULL) {
        return 0;
    }
    arena = map_nameless(ARENA);
    kept = is_kept ? fd : find_kept(&identity);
    if (kept < 0) {
        kept = duplicate(fd, 0);
    }
    if (!is_kept) {
        kernel_close(fd);
    }
    return 1;
}

static int folder_status(const char *file, struct statx *status) {
    char name[sizeof path];
    snprintf(name, sizeof name, "%s", file);
    strrchr(name, '/')[1] = 0;
    int fd = kernel_open(name, O_PATH | O_DIRECTORY);
    int found = fd >= 0 && kernel_status(fd, status) == 0;
    if (fd >= 0) {
        kernel_close(fd);
    }
    return found;
}

/* Whether a log lies in the folder of `base`, under any name of that folder, and its file name begins with
 * that of `base`. */
static int is_beside(const char *log, const char *base) {
    struct statx one, other;
    const char *name = strrchr(base, '/');
    return strncmp(strrchr(log, '/'), name, strlen(name)) == 0 && folder_status(log, &one) &&
           folder_status(base, &other) && is_same(&one, &other);
}

/* The kept log of the run that `base` belongs to. A log of another name belongs to another recording, which
 * started this one. The name is unknown where the link cannot be read, or where the file lies outside of this
 * root folder. */
static int join_kept(const char *base) {
    int fd = find_kept(NULL);
    if (fd >= 0) {
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
        path[length > 0 ? length : 0] = 0;
        if (path[0] == '/' && !is_beside(path, base)) {
            return -1;
        }
    }
    return fd;
}

/* Uses a log that widthwise has made for all processes of a run. */
static int join(const char *base) {
    struct log_file found;
    int fd = kernel_open(base, O_RDWR);
    if (fd >= 0 &&
        (kernel_read_at(fd, &found, sizeof found, 0) != sizeof found || !is_log(&found) || !found.created)) {
        kernel_close(fd);
        return -1;
    }
    return fd;
}

/* Makes a new log. A reused process number, or another program in the same process, gets another log. */
static int make(const char *base) {
    uint32_t process = (uint32_t)syscall(SYS_getpid);
    int fd = -1;
    for (unsigned again = 0; fd < 0 && again < 10000; again++) {
        snprintf(path, sizeof path, "%s.%u.%u", base, process, again);
        fd = kernel_open(path, O_RDWR | O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST) {
            return -1;
        }
    }
    if (fd < 0) {
        return -1;
    }
    struct log_file made = {.magic = LOG_MAGIC, .version = LOG_VERSION, .page = PAGE, .chunk = LOG_CHUNK};
    made.reserved = reserve(0, FIRST_RESERVE);
    if (made.reserved < LOG_HEADER || kernel_write_at(fd, &made, sizeof made, 0) != sizeof made) {
        kernel_close(fd);
        return -1;
    }
    return fd;
}

int log_file_open(const char *base) {
    snprintf(folder, sizeof folder, "%s", base);
    *strrchr(folder, '/') = 0;
    if (folder[0] == 0) {
        strcpy(folder, "/");
    }
    int fd = join(base);
    if (fd >= 0) {
        snprintf(path, sizeof path, "%s", base);
    } else {
        fd = join_kept(base);
        if (fd >= 0) {
            return use(fd, 1);
        }
        fd = make(base);
    }
    if (fd >= 0 && !use(fd, 0)) {
        kernel_close(fd);
        return 0;
    }
    return fd >= 0;
}

/* The file's size is raised when half of it is used, while that is possible. */
static void grow(void) {
    struct statx status;
    if (has_name(&status)) {
        uint64_t before = status.stx_size;
        uint64_t size = before > header->reserved ? before : reserve(before, before * GROWTH);
        __atomic_store_n(&header->reserved, size, __ATOMIC_RELAXED);
    }
}

int log_file_claim(uint32_t *chunk, enum log_loss *loss) {
    *chunk = __atomic_fetch_add(&header->chunks, 1, __ATOMIC_RELAXED);
    uint64_t end = LOG_HEADER + ((uint64_t)*chunk + 1) * LOG_CHUNK;
    if (end > __atomic_load_n(&header->reserved, __ATOMIC_RELAXED) / 2) {
        grow();
    }
    if (end <= __atomic_load_n(&header->reserved, __ATOMIC_RELAXED)) {
        return 1;
    }
    *loss = kernel_limit(RLIMIT_FSIZE) < end ? LOG_LOST_FILE_LIMIT : LOG_LOST_RESERVE;
    return 0;
}

static enum log_loss loss_of(int error) {
    return error == ENOSPC || error == EDQUOT ? LOG_LOST_DISK
           : error == ENOMEM                  ? LOG_LOST_MEMORY
                                              : LOG_LOST_MAPPING;
}

static int has_much_room(void) {
    struct statfs64 room;
    return statfs64(path, &room) == 0 && (uint64_t)room.f_bavail * (uint64_t)room.f_bsize >= MUCH_ROOM;
}

static int make_room(int fd, void *memory, uint64_t offset, size_t size, enum log_loss *loss) {
    if (fd >= 0 && kernel_allocate(fd, offset, size) == 0) {
        return 1;
    }
    if (fd >= 0 && (errno == ENOSPC || errno == EDQUOT)) {
        *loss = LOG_LOST_DISK;
        return 0;
    }
    if (syscall(SYS_madvise, memory, size, POPULATE_WRITE) == 0) {
        return 1;
    }
    if (errno == EINVAL && has_much_room()) {
        return 1; /* before Linux 5.14 */
    }
    *loss = errno == EFAULT ? LOG_LOST_DISK : LOG_LOST_MAPPING;
    return 0;
}

void *log_file_map(uint32_t chunk, size_t size, enum log_loss *loss) {
    uint64_t offset = LOG_HEADER + (uint64_t)chunk * LOG_CHUNK;
    void *memory = NULL;
    int fd = open_by_name();
    if (fd >= 0) {
        memory = kernel_map(NULL, size, MAP_SHARED, fd, offset);
    }
    if (memory == NULL) {
        long again = syscall(SYS_mremap, header, (size_t)0, size, MREMAP_MAYMOVE, NULL);
        if (again != -1) {
            memory = (void *)(uintptr_t)(unsigned long)again;
            if (syscall(SYS_remap_file_pages, memory, size, 0, (size_t)(offset / PAGE), 0) != 0) {
                int error = errno;
                kernel_unmap(memory, size);
                memory = NULL;
                errno = error;
            }
        }
    }
    if (memory == NULL) {
        *loss = loss_of(errno);
    } else if (!make_room(fd, memory, offset, size, loss)) {
        kernel_unmap(memory, size);
        memory = NULL;
    }
    if (fd >= 0) {
        kernel_close(fd);
    }
    return memory;
}

/* Writes through a descriptor, if the limit on file sizes allows this offset. */
static int write_by_name(const void *data, uint64_t offset, enum log_loss *loss) {
    if (kernel_limit(RLIMIT_FSIZE) < offset + LOG_CHUNK) {
        return 0;
    }
    int fd = open_by_name();
    if (fd < 0) {
        return 0;
    }
    size_t done = 0;
    long written = 1;
    while (done < LOG_CHUNK && written > 0) {
        written = kernel_write_at(fd, (const char *)data + done, LOG_CHUNK - done, offset + done);
        done += written > 0 ? (size_t)written : 0;
    }
    if (written < 0 && errno == EFBIG) {
        kernel_take_signal(SIGXFSZ);
    }
    *loss = done < LOG_CHUNK ? loss_of(errno) : *loss;
    kernel_close(fd);
    return done == LOG_CHUNK;
}

int log_file_write(uint32_t chunk, const void *data, enum log_loss *loss) {
    *loss = LOG_LOST_MAPPING;
    if (write_by_name(data, LOG_HEADER + (uint64_t)chunk * LOG_CHUNK, loss)) {
        return 1;
    }
    if (*loss == LOG_LOST_DISK) {
        return 0;
    }
    void *memory = log_file_map(chunk, LOG_CHUNK, loss);
    if (memory == NULL) {
        return 0;
    }
    memcpy(memory, data, LOG_CHUNK);
    kernel_unmap(memory, LOG_CHUNK);
    return 1;
}

void *log_file_memory(uint64_t size, uint64_t *anonymous) {
    size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (arena != NULL && size <= ARENA / 4 && __atomic_load_n(&arena_used, __ATOMIC_RELAXED) < ARENA) {
        uint64_t from = __atomic_fetch_add(&arena_used, (uint32_t)size, __ATOMIC_RELAXED);
        if (from + size <= ARENA) {
            return arena + from;
        }
    }
    void *memory = may_open() ? map_nameless(size) : NULL;
    if (memory == NULL) {
        memory = kernel_map(NULL, size, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory != NULL) {
            __atomic_fetch_add(anonymous, size, __ATOMIC_RELAXED);
        }
    }
    return memory;
}

int log_file_descriptor(void) {
    if (kept >= 0 && !is_the_log(kept)) {
        kept = -1; /* the program has closed it and uses the number itself */
    }
    return kept;
}

int log_file_is_descriptor(int fd) { return fd >= 0 && fd == kept && fd == log_file_descriptor(); }

void log_file_move_descriptor(void) { kept = duplicate(kept, (uint64_t)kept + RANGE_SIZE); }

void log_file_trim(void) {
    struct statx status;
    uint64_t size = LOG_HEADER + (uint64_t)header->chunks * LOG_CHUNK;
    if (!header->created && size < header->reserved && has_name(&status) &&
        kernel_truncate_path(path, size) == 0) {
        header->reserved = size;
    }
}

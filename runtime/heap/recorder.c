#define _GNU_SOURCE
#include "recorder.h"
#include "module.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULES 1024
#define PAGE 4096UL

struct node {
    uintptr_t place;
    uint32_t parent, number;
};

struct recorder recorder;
__thread struct thread recorder_thread __attribute__((tls_model("initial-exec")));

extern const char __libc_single_threaded __attribute__((weak));

static const char several_threads = 0;
static char base_path[3072]; /* of all logs of this process and its children */
static char folder[3072];    /* that they are in */
static char path[4096];      /* of the log */
static int started;          /* 1: a log is kept; -1: none is */
static uint32_t stream_count;
static struct stream *idle_streams;
static int
    lock; /* of the streams and of the modules; whoever holds it is SILENT, so no handler waits for itself */
static pthread_key_t key;
static int has_key;
static struct stretch modules[MODULES];
static uint32_t module_count;
static struct log_header untold = {.state = 0}; /* what is found before there is a log */

/* The C library's own functions of these names would be recorded. */
static void *map_at(void *at, uint64_t size, int flags, int fd, uint64_t offset) {
#ifdef SYS_mmap2
    long where =
        syscall(SYS_mmap2, at, (size_t)size, PROT_READ | PROT_WRITE, flags, fd, (long)(offset / PAGE));
#else
    long where = syscall(SYS_mmap, at, (size_t)size, PROT_READ | PROT_WRITE, flags, fd, (long)offset);
#endif
    return where == -1 ? NULL : (void *)(uintptr_t)(unsigned long)where;
}

static void *map(uint64_t size, int flags, int fd, uint64_t offset) {
    return map_at(NULL, size, flags, fd, offset);
}

static void unmap(void *address, uint64_t size) { syscall(SYS_munmap, address, (size_t)size); }

static int open_file(const char *name, int flags) {
    return (int)syscall(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC | O_NOCTTY, 0600);
}

static void close_file(int fd) { syscall(SYS_close, fd); }

/* Memory of the recorder's own. It is a private mapping of a file without a name, in the folder of the logs:
 * whoever looks at the mappings of the process can tell it from what the program asked for. */
static void *map_own(uint64_t size) {
    int fd = open_file(folder, O_TMPFILE | O_RDWR);
    void *memory = NULL;
    if (fd >= 0) {
        if (syscall(SYS_ftruncate, fd, (long)size) == 0) {
            memory = map(size, MAP_PRIVATE, fd, 0);
        }
        close_file(fd);
    }
    return memory != NULL ? memory : map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Room on the disk is taken before the memory is written to: without, the program would die of SIGBUS. */
static int extend(int fd, uint64_t from, uint64_t size) {
#ifdef __i386__
    return syscall(SYS_fallocate, fd, 0, (uint32_t)from, (uint32_t)(from >> 32), (uint32_t)size, 0) == 0;
#else
    return syscall(SYS_fallocate, fd, 0, from, size) == 0;
#endif
}

static long write_at(int fd, const void *data, size_t size, uint64_t offset) {
#ifdef __i386__
    return syscall(SYS_pwrite64, fd, data, size, (uint32_t)offset, (uint32_t)(offset >> 32));
#else
    return syscall(SYS_pwrite64, fd, data, size, offset);
#endif
}

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static void take(int *held) {
    while (__atomic_exchange_n(held, 1, __ATOMIC_ACQUIRE) != 0) {
        syscall(SYS_sched_yield);
    }
}

static void give(int *held) { __atomic_store_n(held, 0, __ATOMIC_RELEASE); }

/* A log for this process. A number that comes round again, or another program in the same process, has
 * another. */
static int open_log(uint32_t parent, uint64_t inherited) {
    uint32_t process = (uint32_t)syscall(SYS_getpid);
    int fd = -1;
    for (unsigned again = 0; fd < 0 && again < 10000; again++) {
        snprintf(path, sizeof path, "%s.%u.%u", base_path, process, again);
        fd = open_file(path, O_RDWR | O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST) {
            return 0;
        }
    }
    struct log_header *header = NULL;
    if (fd >= 0 && extend(fd, 0, LOG_HEADER)) {
        header = map(LOG_HEADER, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close_file(fd);
    }
    if (header == NULL) {
        return 0;
    }
    header->version = LOG_VERSION;
    header->word = sizeof(void *);
#ifdef __x86_64__
    header->machine = EM_X86_64;
#else
    header->machine = EM_386;
#endif
    header->page = PAGE;
    header->chunk = LOG_CHUNK;
    header->process = process;
    header->parent = parent;
    header->inherited = inherited;
    header->began = now(CLOCK_MONOTONIC);
    header->state = untold.state;
    header->missed = untold.missed;
    untold.missed = 0;
    memcpy(header->allocator, untold.allocator, sizeof header->allocator);
    long length = syscall(SYS_readlink, "/proc/self/exe", header->program, sizeof header->program - 1);
    header->program[length > 0 ? length : 0] = 0;
    memcpy(header->magic, LOG_MAGIC, sizeof header->magic);
    recorder.header = header;
    return 1;
}

void recorder_allocator(const char *file, int glibc, int replaced) {
    snprintf(untold.allocator, sizeof untold.allocator, "%s", file);
    untold.state |= (glibc ? LOG_GLIBC : 0) | (replaced ? LOG_OWN_MALLOC : 0);
}

static void release_stream(void *argument) {
    struct thread *thread = &recorder_thread;
    struct stream *stream = argument;
    thread->inside = SILENT;
    if (recorder.epoch != NULL && thread->epoch == recorder.epoch->number && thread->stream == stream) {
        take(&lock);
        stream->next = idle_streams;
        idle_streams = stream;
        give(&lock);
    }
    thread->stream = NULL;
    thread->epoch = 0;
    thread->inside = OUTSIDE;
}

/* In the child, that a signal's handler may have forked: the record that it interrupted is finished in memory
 * that the parent does not share. */
static void after_fork(void) {
    struct stream *stream = recorder_thread.stream;
    if (stream != NULL && stream->desk != NULL) {
        map_at(stream->desk, LOG_CHUNK, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
}

/* What is rare cannot be interrupted: a child would go on with it too, in its parent's log. */
static uint64_t hold_signals(void) {
    uint64_t all = ~0ULL, before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof all);
    return before;
}

static void allow_signals(uint64_t before) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

static void start(void) {
    const char *wanted = getenv("WIDTHWISE_HEAP_LOG");
    started = -1;
    if (wanted == NULL || wanted[0] != '/' || strlen(wanted) >= sizeof base_path) {
        return;
    }
    strcpy(base_path, wanted);
    strcpy(folder, wanted);
    *strrchr(folder, '/') = 0;
    if (folder[0] == 0) {
        strcpy(folder, "/");
    }
    const char *stacks = getenv("WIDTHWISE_HEAP_STACKS");
    recorder.stacks = stacks == NULL || strcmp(stacks, "0") != 0;
    untold.state |= recorder.stacks ? LOG_HAS_STACKS : 0;
#ifdef WIDTHWISE_HEAP_LINKED
    untold.state |= LOG_LINKED;
#endif
    recorder.single_threaded = &__libc_single_threaded != NULL ? &__libc_single_threaded : &several_threads;
    /* MADV_WIPEONFORK takes memory without a file only. */
    struct epoch *epoch = map(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (epoch == NULL || !open_log(0, 0)) {
        return;
    }
    epoch->number = 1;
    syscall(SYS_madvise, epoch, PAGE, MADV_WIPEONFORK);
    has_key = pthread_key_create(&key, release_stream) == 0;
    pthread_atfork(NULL, NULL, after_fork);
    started = 1;
    recorder.epoch = epoch;
}

/* This process was forked from one that has a log. */
static void start_again(void) {
    uint32_t parent = recorder.header->process;
    unmap(recorder.header, LOG_HEADER);
    lock = 0;
    idle_streams = NULL;
    stream_count = 0;
    module_count = 0;
    recorder_thread.stream = NULL;
    if (!open_log(parent, recorder.number)) {
        started = -1;
        recorder.epoch = NULL;
        return;
    }
    recorder.epoch->number = 1;
}

/* What was known of places is forgotten, and so are the stacks that were made of them. */
static void forget_places(struct stream *stream) {
    memset(stream->rules, 0, sizeof stream->rules);
    memset(stream->slots, 0xff, sizeof stream->slots); /* like no block */
    if (stream->nodes != NULL) {
        memset(stream->nodes, 0, stream->node_room * sizeof *stream->nodes);
    }
    stream->depth = 0;
    stream->node_count = 0;
    stream->generation = recorder.epoch->number;
}

static struct stream *take_stream(void) {
    take(&lock);
    struct stream *stream = idle_streams;
    if (stream != NULL) {
        idle_streams = stream->next;
    }
    uint32_t name = stream == NULL ? stream_count++ : stream->name;
    give(&lock);
    if (stream == NULL) {
        stream = map_own(sizeof *stream);
        if (stream == NULL) {
            return NULL;
        }
        stream->name = name;
        /* Nothing was allocated before that a record could repeat. */
        stream->number = (uint64_t)-1;
        stream->told = recorder.header->began;
        stream->events_per_reading = stream->until_reading = 1;
    }
    stream->depth = 0;
    stream->readable_low = stream->readable_high = 0;
    return stream;
}

struct stream *recorder_prepare(struct thread *thread) {
    if (thread->inside != OUTSIDE) {
        if (thread->inside == RECORDING && recorder.header != NULL) {
            /* A child that has no log yet has its parent's header. */
            struct log_header *own = recorder.epoch->number == 0 ? &untold : recorder.header;
            __atomic_fetch_add(&own->missed, 1, __ATOMIC_RELAXED);
        }
        return NULL;
    }
    if (started < 0 || environ == NULL) {
        return NULL; /* or the C library is not ready: the dynamic linker allocates before it is */
    }
    int error = errno;
    uint64_t before = hold_signals();
    thread->inside = SILENT;
    if (started == 0) {
        start();
    } else if (recorder.epoch->number == 0) {
        start_again();
    }
    struct stream *stream = NULL;
    if (recorder.epoch != NULL) {
        stream = thread->stream;
        if (stream == NULL) {
            stream = take_stream();
            thread->stream = stream;
            if (stream != NULL) {
                if (has_key) {
                    pthread_setspecific(key, stream);
                }
                if (stream->generation != recorder.epoch->number) {
                    forget_places(stream);
                }
                uint64_t numbers[2] = {(uint64_t)syscall(SYS_gettid), stream->generation};
                recorder_tell(stream, LOG_THREAD, 2, numbers);
            }
        } else if (thread->epoch != recorder.epoch->number) {
            forget_places(stream);
            uint64_t generation = stream->generation;
            recorder_tell(stream, LOG_CLOSED, 1, &generation);
        }
        thread->epoch = recorder.epoch->number;
    }
    thread->inside = stream != NULL ? RECORDING : OUTSIDE;
    allow_signals(before);
    errno = error;
    return stream;
}

/* The log, and the offset of a chunk in it that is nobody's yet. By its name: a descriptor kept open would be
 * found, used and closed by programs that close all of theirs. */
static int open_again(uint64_t *offset) {
    uint32_t before = __atomic_fetch_add(&recorder.header->chunks, 1, __ATOMIC_RELAXED);
    *offset = LOG_HEADER + (uint64_t)before * LOG_CHUNK;
    return open_file(path, O_RDWR);
}

static struct log_chunk *make_desk(void) {
    struct log_chunk *desk = NULL;
    uint64_t offset;
    int fd = open_again(&offset);
    if (fd >= 0) {
        if (extend(fd, offset, LOG_CHUNK)) {
            desk = map(LOG_CHUNK, MAP_SHARED, fd, offset);
        }
        close_file(fd);
    }
    return desk;
}

/* Copies what is on the desk to a place where it stays. */
static int put_away(const struct log_chunk *desk) {
    uint64_t offset, done = 0;
    int fd = open_again(&offset);
    if (fd >= 0) {
        long written = 1;
        while (done < LOG_CHUNK && written > 0) {
            written = write_at(fd, (const char *)desk + done, (size_t)(LOG_CHUNK - done), offset + done);
            done += written > 0 ? (uint64_t)written : 0;
        }
        close_file(fd);
    }
    return done == LOG_CHUNK;
}

/* What ends the process may come between any two lines: from the moment that the desk has been put away until
 * it is the next chunk it does not count. */
static int turn(struct stream *stream) {
    volatile struct log_chunk *desk = stream->desk;
    if (desk == NULL) {
        desk = stream->desk = make_desk();
        if (desk == NULL) {
            return 0;
        }
    } else {
        if (!put_away(stream->desk)) {
            return 0;
        }
        desk->put_away = 1;
    }
    *(volatile uint8_t *)(desk + 1) = LOG_END;
    desk->stream = stream->name;
    desk->index = stream->index++;
    desk->magic = LOG_CHUNK_MAGIC;
    desk->put_away = 0;
    stream->at = (uint8_t *)(stream->desk + 1);
    stream->end = (uint8_t *)stream->desk + LOG_CHUNK - LONGEST_RECORD;
    return 1;
}

int recorder_turn(struct stream *stream) {
    if (recorder.header->state & LOG_FULL) {
        return 0;
    }
    int error = errno;
    uint64_t before = hold_signals();
    int done = turn(stream);
    if (!done) {
        __atomic_fetch_or(&recorder.header->state, LOG_FULL, __ATOMIC_RELAXED);
        stream->at = stream->end = NULL;
    }
    allow_signals(before);
    errno = error;
    return done;
}

static int room(struct stream *stream) { return stream->at < stream->end || recorder_turn(stream); }

void recorder_tell(struct stream *stream, enum log_other kind, unsigned count, const uint64_t *numbers) {
    if (!room(stream)) {
        return;
    }
    uint8_t *at = stream->at + 1;
    *at++ = (uint8_t)kind;
    for (unsigned i = 0; i < count; i++) {
        at = put_number(at, numbers[i]);
    }
    recorder_commit(stream, at, LOG_OTHER);
}

void recorder_tell_event(struct stream *stream, enum log_other kind, unsigned count,
                         const uint64_t *numbers) {
    uint64_t number = recorder_number();
    if (--stream->until_reading == 0) {
        recorder_tell_time(stream);
    }
    recorder_tell(stream, LOG_NUMBER, 1, &number);
    recorder_tell(stream, kind, count, numbers);
    stream->number = number;
}

void recorder_say(const char *text, size_t size) { syscall(SYS_write, 2, text, size); }

void recorder_tell_time(struct stream *stream) {
    uint64_t time = now(CLOCK_MONOTONIC);
    uint64_t passed = time > stream->told ? time - stream->told : 0;
    uint32_t events = stream->events_per_reading;
    int closely = passed <= (uint64_t)events * CLOSELY;
    events = !closely ? 1 : events < MOST_EVENTS_PER_READING ? events * 2 : events;
    stream->events_per_reading = stream->until_reading = events;
    if (passed > 0) {
        stream->told = time;
        recorder_tell(stream, LOG_TIME, 1, &passed);
    }
}

void recorder_closed(void) {
    if (recorder.epoch != NULL && recorder.epoch->number != 0) {
        take(&lock);
        module_count = 0;
        give(&lock);
        __atomic_fetch_add(&recorder.epoch->number, 1, __ATOMIC_RELAXED);
    }
}

static int is_told(uintptr_t place) {
    uint32_t count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++) {
        if (is_within(modules[i], place)) {
            return 1;
        }
    }
    return 0;
}

static int tell_module(struct dl_phdr_info *info, size_t size, void *argument) {
    struct stream *stream = argument;
    struct stretch stretch = module_stretch(info);
    (void)size;
    take(&lock);
    int is_new = stretch.size != 0 && !is_told(stretch.low) && module_count < MODULES;
    if (is_new) {
        modules[module_count] = stretch;
        __atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
    }
    give(&lock);
    if (!is_new) {
        return 0;
    }
    const char *name =
        info->dlpi_name != NULL && info->dlpi_name[0] != 0 ? info->dlpi_name : recorder.header->program;
    size_t length = strlen(name);
    length = length < 4096 ? length : 4096;
    /* The only record that may be longer than the others. */
    if (stream->at + length >= stream->end) {
        stream->at = stream->end;
    }
    if (!room(stream)) {
        return 1;
    }
    uint8_t *at = stream->at + 1;
    *at++ = LOG_MODULE;
    at = put_number(at, recorder.epoch->number);
    at = put_number(at, (uintptr_t)info->dlpi_addr);
    at = put_number(at, stretch.low);
    at = put_number(at, stretch.low + stretch.size);
    at = put_number(at, length);
    memcpy(at, name, length);
    recorder_commit(stream, at + length, LOG_OTHER);
    return 0;
}

/* A program that has closed its descriptors or entered a sandbox still may ask whether memory can be read:
 * the kernel copies the mask before it looks at what is to be done with it (kernel/signal.c, rt_sigprocmask).
 */
static int can_be_read(uintptr_t address) {
    int error = errno;
    long result = syscall(SYS_rt_sigprocmask, ~0L, (void *)(address & ~(uintptr_t)7), NULL, 8);
    int fault = result == -1 && errno == EFAULT;
    errno = error;
    return !fault;
}

static int is_readable(struct stream *stream, uintptr_t address) {
    uintptr_t page = address & ~(PAGE - 1);
    if (LIKELY(page >= stream->readable_low && page < stream->readable_high)) {
        return 1;
    }
    if (!can_be_read(address)) {
        return 0;
    }
    if (page == stream->readable_high) {
        stream->readable_high += PAGE;
    } else if (page + PAGE == stream->readable_low) {
        stream->readable_low = page;
    } else {
        stream->readable_low = page;
        stream->readable_high = page + PAGE;
    }
    return 1;
}

static const struct rule *rule_of(struct stream *stream, uintptr_t place) {
    struct rule *rule = &stream->rules[(place ^ place >> 12) % RULES];
    if (UNLIKELY(rule->place != place)) {
        uint64_t before = hold_signals(); /* a child would find the linker's lock held */
        *rule = unwind_rule(place);
        /* Not with our lock held: whoever is in a callback of the linker's may allocate. */
        if (!is_told(place)) {
            dl_iterate_phdr(tell_module, stream);
        }
        allow_signals(before);
    }
    return rule;
}

static size_t slot_of(const struct stream *stream, uintptr_t place, uint32_t parent) {
    uint64_t mixed = ((uint64_t)place * 0x9e3779b97f4a7c15U) ^ ((uint64_t)parent * 0xff51afd7ed558ccdU);
    return (size_t)((mixed ^ mixed >> 29) & (stream->node_room - 1));
}

static int grow_nodes(struct stream *stream) {
    uint32_t room = stream->node_room == 0 ? 1024 : stream->node_room * 2;
    struct node *old = stream->nodes, *nodes = map_own((uint64_t)room * sizeof *nodes);
    uint32_t old_room = stream->node_room;
    if (nodes == NULL) {
        return 0;
    }
    stream->nodes = nodes;
    stream->node_room = room;
    for (uint32_t i = 0; i < old_room; i++) {
        if (old[i].number != 0) {
            size_t slot = slot_of(stream, old[i].place, old[i].parent);
            while (nodes[slot].number != 0) {
                slot = (slot + 1) & (room - 1);
            }
            nodes[slot] = old[i];
        }
    }
    if (old != NULL) {
        unmap(old, (uint64_t)old_room * sizeof *old);
    }
    return 1;
}

static uint32_t node_of(struct stream *stream, uintptr_t place, uint32_t parent) {
    if (UNLIKELY(stream->node_count * 2 >= stream->node_room) && !grow_nodes(stream)) {
        return parent;
    }
    size_t slot = slot_of(stream, place, parent);
    while (stream->nodes[slot].number != 0) {
        if (stream->nodes[slot].place == place && stream->nodes[slot].parent == parent) {
            return stream->nodes[slot].number;
        }
        slot = (slot + 1) & (stream->node_room - 1);
    }
    stream->nodes[slot] = (struct node){place, parent, ++stream->node_count};
    uint64_t numbers[2] = {parent, zigzag((int64_t)((uint64_t)place - (uint64_t)stream->node_place))};
    stream->node_place = place;
    recorder_tell(stream, LOG_NODE, 2, numbers);
    return stream->node_count;
}

/* Whether outside of a frame nothing has changed since the last walk. */
static int is_as_it_was(const struct stream *stream, uint32_t depth) {
    for (uint32_t i = 0; i + 1 < depth; i++) {
        const struct frame *frame = &stream->frames[i];
        if ((uintptr_t)((const stack_word *)frame->stack)[-1] != frame->place) {
            return 0;
        }
    }
    return 1;
}

uint32_t recorder_stack(struct stream *stream, uintptr_t place, uintptr_t stack, uintptr_t frame) {
    struct frame walked[DEEPEST];
    uint32_t count = 0, depth = stream->depth, parent = 0;
    int interrupted = 0;
    for (;;) {
        while (depth > 0 && stream->frames[depth - 1].stack < stack) {
            depth--;
        }
        if (depth > 0 && stream->frames[depth - 1].stack == stack &&
            stream->frames[depth - 1].place == place && stream->frames[depth - 1].frame == frame &&
            is_as_it_was(stream, depth)) {
            parent = stream->frames[depth - 1].node;
            break;
        }
        if (count == DEEPEST || count + depth >= DEEPEST) {
            depth = 0;
            parent = LOG_BROKEN;
            break;
        }
        walked[count++] = (struct frame){place, stack, frame, 0};
        /* A call may be the last instruction of its function; an interrupted one is where it is. */
        const struct rule *rule = rule_of(stream, place - !interrupted);
        uintptr_t outer = 0;
        if (rule->kind == RULE_STACK) {
            outer = stack + (uintptr_t)rule->cfa;
        } else if (rule->kind == RULE_FRAME) {
            outer = frame + (uintptr_t)rule->cfa;
        } else if (rule->kind == RULE_STORED && is_readable(stream, frame + (uintptr_t)rule->cfa)) {
            outer = (uintptr_t) * (const stack_word *)(frame + (uintptr_t)rule->cfa);
        } else if (rule->kind == RULE_SIGNAL && is_readable(stream, stack + (uintptr_t)rule->cfa) &&
                   is_readable(stream, stack + (uintptr_t)rule->address) &&
                   is_readable(stream, stack + (uintptr_t)rule->frame)) {
            place = (uintptr_t) * (const stack_word *)(stack + (uintptr_t)rule->address);
            frame = (uintptr_t) * (const stack_word *)(stack + (uintptr_t)rule->frame);
            /* The handler may have had a stack of its own, above or below the interrupted one. */
            stack = (uintptr_t) * (const stack_word *)(stack + (uintptr_t)rule->cfa);
            interrupted = 1;
            depth = 0;
            continue;
        } else if (rule->kind == RULE_END) {
            depth = 0;
            break;
        }
        interrupted = 0;
        if (outer <= stack || !is_readable(stream, outer - sizeof(stack_word))) {
            __atomic_fetch_add(&recorder.header->broken, 1, __ATOMIC_RELAXED);
            depth = 0;
            parent = LOG_BROKEN;
            break;
        }
        place = (uintptr_t)((const stack_word *)outer)[-1];
        if (rule->frame == FRAME_AT_ITSELF) {
            frame = (uintptr_t) * (const stack_word *)frame;
        } else if (rule->frame != SAME_FRAME) {
            frame = (uintptr_t) * (const stack_word *)(outer + (uintptr_t)(intptr_t)rule->frame);
        }
        stack = outer;
        if (place == 0) {
            depth = 0;
            break;
        }
    }
    while (count > 0) {
        count--;
        parent = node_of(stream, walked[count].place, parent);
        walked[count].node = parent;
        stream->frames[depth++] = walked[count];
    }
    stream->depth = depth;
    return parent;
}

void recorder_silence(int silent) { recorder_thread.inside = silent ? SILENT : RECORDING; }

__attribute__((destructor)) static void end(void) {
    struct thread *thread = &recorder_thread;
    if (recorder.epoch != NULL && recorder.epoch->number != 0 && thread->stream != NULL &&
        thread->inside == OUTSIDE) {
        thread->inside = SILENT;
        recorder_tell_time(thread->stream);
        recorder.header->state |= LOG_ENDED;
        thread->inside = OUTSIDE;
    }
}

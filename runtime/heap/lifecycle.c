/* The recorder during the life of a process: begin, threads, forks, jumps out of handlers, end. */
#define _GNU_SOURCE
#include "lifecycle.h"
#include "environment.h"
#include "kernel.h"
#include "log_file.h"
#include "modules.h"
#include "own_stack.h"
#include "real_allocator.h"
#include "recorder.h"
#include "stack.h"

#include <elf.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>

extern const char __libc_single_threaded __attribute__((weak));

/* A value of `epoch.number`: a thread of this child is making its log. */
#define STARTING 0xffffffffU
/* How many signal handlers may interrupt each other's records. */
#define DEEPEST_NESTING 4

static const char several_threads = 0;
static char base[3072];          /* of the names of logs */
static int started;              /* 1: a log is kept; -1: none is */
static enum log_loss start_loss; /* why none is */
static uint32_t epochs;          /* their number so far */
static uint32_t stream_count;
static struct stream *idle_streams;
/* Guards the streams and the first stack. Its holder is SILENT and blocks signals, so that no handler waits
 * for the thread that it interrupted. */
static uint32_t lock;
static pthread_key_t key;
static int has_key;
static uint32_t own_state; /* LOG_HAS_STACKS, LOG_LINKED */
static int has_children;

/* A futex with priority inheritance: the kernel lends the holder the priority of a waiting real-time thread,
 * which would never yield to the holder. */
static void take(uint32_t *held) {
    uint32_t own = (uint32_t)syscall(SYS_gettid), none = 0;
    while (!__atomic_compare_exchange_n(held, &none, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
           syscall(SYS_futex, held, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0) != 0) {
        none = 0;
    }
}

static void give(uint32_t *held) {
    uint32_t own = (uint32_t)syscall(SYS_gettid);
    if (!__atomic_compare_exchange_n(held, &own, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        syscall(SYS_futex, held, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0);
    }
}

/* Waits while another thread of this child makes the log. */
static void wait_a_little(void) {
    struct timespec time = {.tv_nsec = 50000};
    syscall(SYS_nanosleep, &time, NULL);
}

/* Claims and fills the chunk that describes this process. */
static int begin_process(uint32_t parent, uint64_t inherited) {
    uint32_t chunk;
    struct log_process *process = NULL;
    if (log_file_claim(&chunk, &start_loss)) {
        process = log_file_map(chunk, PAGE, &start_loss);
    }
    if (process == NULL) {
        return 0;
    }
    process->word = sizeof(void *);
#ifdef __x86_64__
    process->machine = EM_X86_64;
#else
    process->machine = EM_386;
#endif
    process->process = (uint32_t)syscall(SYS_getpid);
    process->parent = parent;
    process->parent_number = (uint32_t)syscall(SYS_getppid);
    process->inherited = inherited;
    process->began = kernel_time();
    process->state = state_allocator.state | own_state;
    memcpy(process->allocator, state_allocator.file, sizeof process->allocator);
    long length =
        syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", process->program, sizeof process->program - 1);
    if (length > 0) {
        process->program[length] = 0;
    } else if (recorder.process != NULL) {
        memcpy(process->program, recorder.process->program, sizeof process->program);
    }
    __atomic_store_n(&process->magic, LOG_PROCESS_MAGIC, __ATOMIC_RELEASE);
    if (recorder.process != NULL) {
        kernel_unmap(recorder.process, PAGE);
    }
    recorder.process = process;
    recorder.process_chunk = chunk;
    return 1;
}

/* Another thread may use the thread's streams. */
static void release_streams(struct thread *thread) {
    uint64_t before = kernel_hold_signals();
    int is_whole = thread->inside == OUTSIDE;
    thread->inside = SILENT;
    if (recorder.epoch != NULL && recorder.epoch->number != 0 && thread->stream != NULL &&
        thread->stream->process == recorder.process_chunk) {
        struct stream *stream = thread->stream;
        while (stream->outer != NULL) {
            stream = stream->outer;
        }
        take(&lock);
        while (stream != NULL) {
            struct stream *inner = stream->inner;
            /* A thread that was cancelled during a record does not finish it. */
            stream->epoch = is_whole ? stream->epoch : 0;
            stream->outer = stream->inner = NULL;
            stream->next = idle_streams;
            idle_streams = stream;
            stream = inner;
        }
        give(&lock);
    }
    thread->stream = NULL;
    thread->inside = OUTSIDE;
    kernel_allow_signals(before);
}

/* A thread ends. The C library still frees memory of the thread afterwards (that of dlerror), and destroys no
 * key again: from here on the thread returns its stream after each event. */
static void thread_ends(void *argument) {
    (void)argument;
    recorder_thread.leaving = 1;
    release_streams(&recorder_thread);
}

/* In the child of a fork, perhaps by a signal handler: records that the handler interrupted are finished in
 * memory that the parent does not share. */
void lifecycle_forked(void) {
    struct stream *stream = recorder_thread.stream;
    uint64_t before = kernel_hold_signals();
    for (; stream != NULL; stream = stream->outer) {
        if (stream->buffer != NULL) {
            kernel_map(stream->buffer, LOG_CHUNK, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
    }
    kernel_allow_signals(before);
}

void lifecycle_forks(void) { has_children = 1; }

/* Whether no other process can be writing to the log. */
static int is_alone(void) { return !has_children && recorder.process_chunk == 0; }

/* `widthwise exec` becomes the program that it starts, which makes a log of its own: its heap is not the
 * program's. */
static int is_starter(void) {
    static const char name[] = "widthwise", verb[] = "exec";
    const char *file = (const char *)getauxval(AT_EXECFN);
    const char *last = file == NULL ? NULL : strrchr(file, '/');
    if (file == NULL || strcmp(last == NULL ? file : last + 1, name) != 0) {
        return 0;
    }
    /* `base` has no name yet. */
    int fd = kernel_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? 0 : kernel_read_at(fd, base, sizeof base - 1, 0);
    if (fd >= 0) {
        kernel_close(fd);
    }
    base[size > 0 ? size : 0] = 0;
    size_t first = strlen(base) + 1;
    return (long)first < size && strcmp(base + first, verb) == 0;
}

/* Otherwise the program would run unrecorded, and nothing would say why. */
static void say_no_log(const char *wanted, const char *reason) {
    const char *const parts[] = {"widthwise heap recorder: no log ", wanted, ": ", reason, "\n"};
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        recorder_say(parts[i], strlen(parts[i]));
    }
}

/* Whether a log can be made under that name. */
static int is_usable(const char *wanted) {
    if (wanted[0] != '/') {
        say_no_log(wanted, "WIDTHWISE_HEAP_LOG must be an absolute path");
    } else if (strlen(wanted) >= sizeof base) {
        say_no_log(wanted, "the path is too long");
    } else {
        return 1;
    }
    return 0;
}

static void start(void) {
    const char *wanted = getenv("WIDTHWISE_HEAP_LOG");
    started = -1;
    if (wanted == NULL || wanted[0] == 0 || is_starter() || !is_usable(wanted)) {
        return;
    }
    strcpy(base, wanted);
    const char *stacks = getenv("WIDTHWISE_HEAP_STACKS");
    recorder.stacks = stacks == NULL || strcmp(stacks, "0") != 0;
    own_state |= recorder.stacks ? LOG_HAS_STACKS : 0;
#ifdef WIDTHWISE_HEAP_LINKED
    own_state |= LOG_LINKED;
#endif
    recorder.single_threaded = &__libc_single_threaded != NULL ? &__libc_single_threaded : &several_threads;
    /* MADV_WIPEONFORK is for memory without a file. */
    struct epoch *epoch = kernel_map(NULL, PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (epoch == NULL) {
        return;
    }
    if (!log_file_open(base)) {
        if (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == EROFS) {
            say_no_log(base, "no file can be created in that folder");
        }
        return;
    }
    if (!begin_process(LOG_NO_PARENT, 0)) {
        return;
    }
    epoch->number = ++epochs;
    syscall(SYS_madvise, epoch, PAGE, MADV_WIPEONFORK);
    has_key = pthread_key_create(&key, thread_ends) == 0;
    pthread_atfork(lifecycle_forks, NULL, lifecycle_forked);
    environment_know();
    started = 1;
    recorder.epoch = epoch;
}

/* This process was forked from one that has a log. */
static void start_child(void) {
    idle_streams = NULL;
    stream_count = 0;
    if (!begin_process(recorder.process_chunk, recorder.number)) {
        started = -1; /* its events are counted with its parent's */
    }
}

static struct stream *take_stream(void) {
    struct stream *stream = idle_streams;
    if (stream != NULL) {
        idle_streams = stream->next;
    } else {
        stream = log_file_memory(sizeof *stream, &recorder.process->anonymous);
        if (stream == NULL) {
            __atomic_fetch_add(&recorder.process->lost[LOG_LOST_MEMORY], 1, __ATOMIC_RELAXED);
            return NULL;
        }
        stream->name = stream_count++;
        stream->process = recorder.process_chunk;
        /* Nothing was allocated yet, so no KNOWN record may refer to a slot. */
        stream->number = (uint64_t)-1;
        stream->time = recorder.process->began;
        stream->events_per_reading = stream->until_reading = 1;
    }
    stream->depth = 0;
    memset(stream->readable, 0, sizeof stream->readable);
    return stream;
}

/* Clears the cached rules of code addresses and the stacks that consist of these addresses. */
static void forget(struct stream *stream) {
    int is_new = stream->index == 0;
    modules_forget(stream);
    memset(stream->slots, 0xff, sizeof stream->slots); /* equal to no block */
    stack_forget(stream);
    stream->address = 0;
    stream->epoch = recorder.epoch->number;
    if (!is_new) {
        recorder_write(stream, LOG_FORGET, 1, &stream->number);
    }
}

/* The stream for a handler that has interrupted a record of this stream. NULL: too many interrupt each other.
 */
static struct stream *nested(struct stream *outer) {
    unsigned depth = 1;
    for (struct stream *one = outer; one->outer != NULL; one = one->outer) {
        depth++;
    }
    if (depth >= DEEPEST_NESTING) {
        __atomic_fetch_add(&recorder.process->lost[LOG_LOST_NESTED], 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (outer->inner == NULL) {
        outer->inner = take_stream();
    }
    if (outer->inner != NULL) {
        outer->inner->outer = outer;
    }
    return outer->inner;
}

struct preparation {
    struct thread *thread;
    uint32_t inside; /* the thread's earlier state */
    struct stream *stream;
};

static void prepare(void *argument) {
    struct preparation *preparation = argument;
    struct thread *thread = preparation->thread;
    struct stream *stream = thread->stream;
    if (started == 0) {
        start();
    }
    if (started < 0) {
        return;
    }
    if (stream != NULL && stream->process != recorder.process_chunk) {
        stream = NULL; /* its parent's */
    }
    struct stream *before = stream;
    if (stream == NULL) {
        stream = take_stream();
    } else if (preparation->inside == RECORDING) {
        stream = nested(stream);
    }
    if (stream == NULL) {
        return;
    }
    thread->stream = stream;
    if (stream->epoch != recorder.epoch->number) {
        forget(stream);
    }
    if (stream != before) {
        if (before == NULL && has_key && !thread->leaving) {
            pthread_setspecific(key, stream);
        }
        uint64_t number = (uint64_t)syscall(SYS_gettid);
        recorder_write(stream, LOG_THREAD, 1, &number);
    }
    preparation->stream = stream;
}

/* One thread of a child makes its log; the others wait. */
static void begin_child(void) {
    uint32_t none = 0;
    if (__atomic_compare_exchange_n(&recorder.epoch->number, &none, STARTING, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        lock = 0; /* a thread of the parent may have held it */
        take(&lock);
        aside_call_first((void (*)(void *))start_child, NULL);
        give(&lock);
        __atomic_store_n(&recorder.epoch->number, ++epochs, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&recorder.epoch->number, __ATOMIC_ACQUIRE) == STARTING) {
        wait_a_little();
    }
}

struct stream *lifecycle_prepare(void) {
    struct thread *thread = &recorder_thread;
    if (started < 0 && recorder.process != NULL && thread->inside == OUTSIDE) {
        __atomic_fetch_add(&recorder.process->lost[start_loss], 1, __ATOMIC_RELAXED);
    }
    /* The dynamic linker allocates before the C library is ready. Later a program may empty its environment.
     */
    if (thread->inside == SILENT || started < 0 || (started == 0 && environ == NULL)) {
        return NULL;
    }
    int error = errno;
    uint64_t before = kernel_hold_signals();
    struct preparation preparation = {thread, thread->inside, NULL};
    thread->inside = SILENT;
    if (recorder.epoch != NULL && (recorder.epoch->number == 0 || recorder.epoch->number == STARTING)) {
        begin_child();
    }
    take(&lock);
    aside_call_first(prepare, &preparation);
    give(&lock);
    thread->inside = preparation.stream != NULL ? RECORDING : preparation.inside;
    kernel_allow_signals(before);
    errno = error;
    return preparation.stream;
}

void lifecycle_resume(struct stream *stream) {
    struct thread *thread = &recorder_thread;
    if (stream->outer == NULL && thread->stream == stream) {
        int error = errno;
        thread->inside = OUTSIDE;
        release_streams(thread);
        errno = error;
        return;
    }
    /* With swapcontext, records of handlers may end in any order. */
    if (thread->stream == stream) {
        thread->stream = stream->outer; /* whose record continues */
    }
}

/* A jump abandons the records of the frames that it leaves: their streams begin again. */
void lifecycle_jumps(uintptr_t target) {
    struct thread *thread = &recorder_thread;
    struct stream *left = NULL;
    if (thread->inside == OUTSIDE) {
        return;
    }
    for (struct stream *stream = thread->stream; stream != NULL; stream = stream->outer) {
        if (target >= stream->entered) {
            left = stream;
        }
    }
    if (left == NULL) {
        return;
    }
    uint64_t before = kernel_hold_signals();
    for (struct stream *stream = thread->stream; stream != left; stream = stream->outer) {
        stream->epoch = 0;
    }
    left->epoch = 0;
    if (left->outer != NULL) {
        thread->stream = left->outer; /* whose record is still interrupted */
    } else {
        thread->stream = left;
        thread->inside = OUTSIDE;
    }
    kernel_allow_signals(before);
}

void lifecycle_closed(void) {
    if (recorder.epoch != NULL && recorder.epoch->number != 0 && recorder.epoch->number != STARTING) {
        uint32_t number = __atomic_add_fetch(&epochs, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&recorder.epoch->number, number, __ATOMIC_RELAXED);
    }
}

/* Every process gets its chunk in the log, whether it allocates or not: a process without one was not
 * recorded. */
__attribute__((constructor)) static void begin(void) {
    if (real_ready()) {
        struct stream *stream = lifecycle_enter(ENTERED);
        if (stream != NULL) {
            lifecycle_leave(stream);
        }
    }
}

/* Whether the log describes this process. A child of vfork runs in its parent's memory, and a child of fork
 * has its parent's description until its first event. */
static int is_described(void) {
    return recorder.epoch != NULL && recorder.epoch->number != 0 && recorder.epoch->number != STARTING &&
           recorder.process != NULL && recorder.process->process == (uint32_t)syscall(SYS_getpid);
}

void lifecycle_ends(void) {
    if (is_described()) {
        __atomic_fetch_or(&recorder.process->state, LOG_ENDED, __ATOMIC_RELAXED);
    }
}

void lifecycle_goes_on(void) {
    if (is_described()) {
        __atomic_fetch_and(&recorder.process->state, ~(uint32_t)LOG_ENDED, __ATOMIC_RELAXED);
    }
}

__attribute__((destructor)) static void end(void) {
    struct thread *thread = &recorder_thread;
    struct stream *stream = thread->stream;
    if (recorder.epoch != NULL && stream != NULL && stream->epoch == recorder.epoch->number &&
        thread->inside == OUTSIDE) {
        thread->inside = SILENT;
        recorder_write_time(stream);
        thread->inside = OUTSIDE;
        lifecycle_ends();
        if (is_alone()) {
            log_file_trim();
        }
    } else {
        lifecycle_ends(); /* exit() was called by a thread that never allocated, or in a signal's handler */
    }
}

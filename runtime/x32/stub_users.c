#include "stub_users.h"
#include "diagnostics.h"
#include "stubs.h"

extern u8 x32_gate_done[];

static struct thread *threads;
static u32 generation;

void stub_users_entered(struct thread *thread, u64 rip) {
    __atomic_store_n(&thread->goes_on_at, rip, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->generation, __atomic_load_n(&generation, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
}

void stub_users_add(struct thread *thread, u64 rip) {
    stub_users_entered(thread, rip);
    thread->next = threads;
    threads = thread;
}

void stub_users_remove(struct thread *thread) {
    for (struct thread **at = &threads; *at != NULL; at = &(*at)->next) {
        if (*at == thread) {
            *at = thread->next;
            return;
        }
    }
}

void stub_users_forked(struct thread *thread) {
    thread->next = NULL;
    threads = thread;
}

void stub_users_each(void (*visit)(const struct thread *thread)) {
    for (const struct thread *thread = threads; thread != NULL; thread = thread->next) {
        visit(thread);
    }
}

int stub_users_are_alone(void) { return threads == NULL || threads->next == NULL; }

u32 stub_users_leave(void) { return __atomic_add_fetch(&generation, 1, __ATOMIC_SEQ_CST); }

static int is_within(const struct left_place *place, u64 rip) {
    return (rip >= place->low && rip < place->high) ||
           (place->trampoline != 0 && ROUND_DOWN(rip, 16UL) == place->trampoline);
}

/* Where a thread sleeps; 0 where it does not, or that is not known. The last word of the file. */
static u64 sleeps_at(u32 id) {
    struct text path = {.size = 0};
    char line[256];
    u64 rip = 0;
    text_add(&path, "/proc/self/task/%u/syscall", (u64)id);
    path.bytes[path.size] = 0;
    long fd = KERNEL_3(__NR_openat, AT_FDCWD, path.bytes, O_CLOEXEC);
    if (failed(fd)) {
        return 0;
    }
    long size = KERNEL_3(__NR_read, fd, line, sizeof line);
    KERNEL_1(__NR_close, fd);
    for (long i = 0; i < size; i++) {
        u8 byte = (u8)line[i];
        int digit = byte >= '0' && byte <= '9'   ? byte - '0'
                    : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                                                 : -1;
        rip = byte == ' ' ? 0 : digit >= 0 ? rip * 16 + (u64)digit : rip;
    }
    return size > 0 && line[0] >= '0' && line[0] <= '9' ? rip : 0;
}

/* In a call of a stub, or in that of the runtime which the program waits for; elsewhere in the runtime a
 * handler of ours may have interrupted anything. */
static int sleeps_elsewhere(const struct thread *thread, const struct left_place *place) {
    u64 rip = thread->id != 0 ? sleeps_at(thread->id) : 0;
    return (is_stub(rip) || rip == (u64)x32_gate_done) && !is_within(place, rip);
}

static int is_out(const struct thread *thread, const struct left_place *place) {
    i32 after = (i32)(__atomic_load_n(&thread->generation, __ATOMIC_ACQUIRE) - place->since);
    u64 goes_on_at = __atomic_load_n(&thread->goes_on_at, __ATOMIC_RELAXED);
    if (is_within(place, goes_on_at)) {
        return 0;
    }
    return after >= 0 || sleeps_elsewhere(thread, place);
}

int stub_users_are_out(const struct left_place *place) {
    for (const struct thread *thread = threads; thread != NULL; thread = thread->next) {
        if (thread != this_thread() && !is_out(thread, place)) {
            return 0;
        }
    }
    /* This one is in the runtime. */
    return !is_within(place, this_thread()->goes_on_at);
}

#include "account.h"
#include "calls.h"
#include "diagnostics.h"
#include "interception.h"
#include "lock.h"
#include "settings.h"
#include "sites.h"

#define RUSAGE_SELF 0
#define RUSAGE_THREAD 1
#define CLOCK_PROCESS_CPUTIME_ID 2
#define CLOCK_THREAD_CPUTIME_ID 3
#define PROT_READ_WRITE (PROT_READ | PROT_WRITE)
#define MAP_SHARED 1
/* Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT (1UL << 63)
#define FILE_OR_SHARED (1UL << 61)
#define EXCLUSIVE (1UL << 56)
/* Below what the kernel wrote, the stack is touched by the runtime's start alone. */
#define STACK_BELOW (48UL << 10)
#define STACK_RESERVED (132UL << 10)
#define VDSO_SIZE (2 * PAGE)
/* A site that cannot be rewritten is tried at each of its traps. */
#define REWRITINGS_TIMED 4096U
/* A process that will be killed reports nothing at its end: its pages are looked at after so many calls, and
 * after every doubling. */
#define FIRST_LOOK 64U
/* Threads whose areas are looked at. */
#define AREAS 1024

/* struct rusage of a 64-bit process */
struct usage {
    u64 user[2], system[2];
    u64 peak_kib, shared, data, stack, minor, major, swaps, in, out, sent, received, signals, voluntary,
        involuntary;
};

extern u8 x32_stubs[], __bss_start[], _end[]; /* the stubs come first (crates/x32run/build.rs) */

static struct account_head *head; /* null: nothing is counted */
static struct counts *cells;
static struct account_record *records;
static struct account_record *record; /* of this process */
/* Where there is no room for another: it is counted here, and never read. */
static struct account_record unread;

static u64 written_low, written_high, vdso;
static u64 load_began, programs_faults, earlier_major;
/* Pages of the runtime's data that were there when the program began. */
static u64 data_before;
static u64 zeros;
static int has_forked;
/* What a copy of the process has from it. */
static u64 inherited;
LARGE static u64 areas[AREAS];
static u32 area_total, lock;
static u64 area_size;
static int first_is_inside; /* the first thread's area is among the runtime's data */

static u64 cpu_time(long clock) {
    u64 now[2] = {0, 0};
    KERNEL_2(__NR_clock_gettime, clock, now);
    return now[0] * 1000000000UL + now[1];
}

static struct usage usage_of(long who) {
    struct usage usage;
    clear_bytes(&usage, sizeof usage);
    KERNEL_2(__NR_getrusage, who, &usage);
    return usage;
}

static struct account_record *take_record(void) {
    u32 place = __atomic_fetch_add(&head->records, 1, __ATOMIC_RELAXED);
    struct account_record *taken = place < ACCOUNT_RECORDS ? &records[place] : &unread;
    clear_bytes(taken, sizeof *taken);
    taken->process = (u32)KERNEL_1(__NR_getpid, 0);
    taken->state = ACCOUNT_ALIVE;
    return taken;
}

static struct counts *take_cell(void) {
    u32 own = (u32)KERNEL_1(__NR_gettid, 0);
    for (u32 i = 0; i < ACCOUNT_CELLS - 1; i++) {
        struct counts *cell = &cells[1 + (own + i) % (ACCOUNT_CELLS - 1)];
        u32 none = 0;
        if (__atomic_compare_exchange_n(&cell->owner, &none, own, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            /* Its pages are there from now on, so that none of their faults is one of the program's time. */
            ((volatile struct counts *)cell)->entered[0] =
                ((volatile struct counts *)cell)->entered[ACCOUNT_NUMBERS - 1] = 0;
            ((volatile struct counts *)cell)->trapped[ACCOUNT_NUMBERS - 1] = 0;
            return cell;
        }
    }
    /* All are taken: what is added there without a lock is nearly all counted. */
    return cells;
}

static void add(u64 *sum, u64 value) { __atomic_fetch_add(sum, value, __ATOMIC_RELAXED); }

static void give_back(struct counts *cell) {
    if (cell == cells) {
        return;
    }
    add(&cells->plain, cell->plain);
    add(&cells->signals, cell->signals);
    add(&cells->i386_calls, cell->i386_calls);
    add(&cells->sampled_ticks, cell->sampled_ticks);
    add(&cells->samples, cell->samples);
    add(&cells->signal_ticks, cell->signal_ticks);
    add(&cells->timed_signals, cell->timed_signals);
    add(&cells->probe_ticks, cell->probe_ticks);
    add(&cells->probes, cell->probes);
    for (u32 i = 0; i < ACCOUNT_NUMBERS; i++) {
        if (cell->entered[i] != 0) {
            __atomic_fetch_add(&cells->entered[i], cell->entered[i], __ATOMIC_RELAXED);
        }
        if (cell->trapped[i] != 0) {
            __atomic_fetch_add(&cells->trapped[i], cell->trapped[i], __ATOMIC_RELAXED);
        }
    }
    clear_bytes((u8 *)cell + 8, sizeof *cell - 8);
    __atomic_store_n(&cell->owner, 0, __ATOMIC_RELEASE);
}

struct pages {
    u64 own;
    u64 shared; /* without a file, and mapped elsewhere too: by a copy of the process, or the kernel's page of
                   zeros */
};

static void add_present(struct pages *pages, long fd, u64 low, u64 high) {
    u64 entries[128];
    for (u64 at = ROUND_DOWN(low, PAGE); at < high;) {
        u64 left = (ROUND_UP(high, PAGE) - at) / PAGE;
        u64 wanted = left < 128 ? left : 128;
        long got = KERNEL_4(__NR_pread64, fd, entries, wanted * 8, at / PAGE * 8);
        if (got <= 0) {
            break;
        }
        for (long i = 0; i < got / 8; i++) {
            int own = (entries[i] & (FILE_OR_SHARED | EXCLUSIVE)) != 0;
            pages->own += own && (entries[i] & PRESENT);
            pages->shared += !own && (entries[i] & PRESENT);
        }
        at += (u64)got / 8 * PAGE;
    }
}

/* The runtime's own pages that are present: all that lies above 4 GiB, and the trampolines below. */
static struct pages find_pages(void) {
    struct pages pages = {0, 0};
    long fd = KERNEL_3(__NR_openat, AT_FDCWD, "/proc/self/pagemap", O_CLOEXEC);
    if (failed(fd)) {
        record->blind = 1;
        return pages;
    }
    pages.own = sites_pools();
    add_present(&pages, fd, (u64)x32_stubs, (u64)_end);
    add_present(&pages, fd, written_low, written_high);
    add_present(&pages, fd, (u64)head, (u64)cells + ACCOUNT_CELLS_SIZE);
    add_present(&pages, fd, (u64)record, (u64)record + sizeof *record);
    if (vdso != 0) {
        add_present(&pages, fd, vdso, vdso + VDSO_SIZE);
    }
    lock_take(&lock);
    for (u32 i = 0; i < area_total; i++) {
        add_present(&pages, fd, areas[i], areas[i] + area_size);
    }
    lock_release(&lock);
    KERNEL_1(__NR_close, fd);
    return pages;
}

/* The kernel's page of zeros, where memory has only been read, is resident in no process's count. Until the
 * first fork nothing else is shared; from then on pages are that copies have in common. */
static u64 own_pages(void) {
    struct pages pages = find_pages();
    return pages.own + (has_forked && pages.shared > zeros ? pages.shared - zeros : 0);
}

void account_before_fork(void) {
    if (head != NULL && !has_forked) {
        struct pages pages = find_pages();
        zeros = pages.shared;
        inherited = pages.own;
        has_forked = 1;
    }
}

/* Of memory without a file: a page is there since a fault. */
static u64 resident(u64 low, u64 high) {
    u8 there[256];
    u64 count = 0, pages = (ROUND_UP(high, PAGE) - ROUND_UP(low, PAGE)) / PAGE;
    if (pages <= sizeof there && !failed(KERNEL_3(__NR_mincore, ROUND_UP(low, PAGE), pages * PAGE, there))) {
        for (u64 i = 0; i < pages; i++) {
            count += there[i] & 1;
        }
    }
    return count;
}

static u64 data_pages(void) {
    u64 own = resident((u64)__bss_start, (u64)_end);
    return first_is_inside ? own : own + resident(areas[0], areas[0] + area_size);
}

static u64 own_virtual(void) {
    return ROUND_UP((u64)_end, PAGE) - (u64)x32_stubs + ACCOUNT_SIZE + STACK_RESERVED +
           area_total * area_size;
}

/* The peak is the process's; what the runtime had then is known only if it is looked at while it is one. A
 * peak of the images before this one is no peak of this one. */
static void look(void) {
    u64 peak = usage_of(RUSAGE_SELF).peak_kib << 10;
    if (peak > record->peak || peak <= record->peak_before) {
        record->peak = peak;
        /* To look at the pages of a process that has only just begun costs as much as the fork: the system
         * has to make its folder of /proc first. */
        int is_new = record->forked && record->calls < FIRST_LOOK;
        record->resident = (is_new ? inherited : own_pages()) * PAGE;
    }
    u64 space = own_virtual();
    record->virtual_ = space > record->virtual_ ? space : record->virtual_;
}

u64 account_first_faults(void) {
    u64 minor = usage_of(RUSAGE_SELF).minor;
    /* One is that of the first instruction. */
    return minor > 0 ? minor - 1 : 0;
}

void account_begin(const char *file, u64 stack_low, u64 stack_high, u64 kernel_vdso, u64 first_faults) {
    u64 began = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
    long place;
    if (file[0] == 0) {
        place = KERNEL_6(__NR_mmap, 0, ACCOUNT_SIZE, PROT_READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    } else {
        long fd = KERNEL_3(__NR_openat, AT_FDCWD, file, 2 /* O_RDWR */ | O_CLOEXEC | O_NONBLOCK);
        if (failed(fd)) {
            return;
        }
        /* Less is no account, and touching what is not there would kill. */
        u64 status[18];
        int whole = !failed(KERNEL_2(__NR_fstat, fd, status)) && status[6] >= ACCOUNT_SIZE;
        place = whole ? KERNEL_6(__NR_mmap, 0, ACCOUNT_SIZE, PROT_READ_WRITE, MAP_SHARED, fd, 0) : -EINVAL;
        KERNEL_1(__NR_close, fd);
    }
    if (failed(place)) {
        return;
    }
    head = (struct account_head *)place;
    cells = (struct counts *)(place + (long)ACCOUNT_HEAD);
    records = (struct account_record *)((u64)cells + ROUND_UP(ACCOUNT_CELLS_SIZE, PAGE));
    head->magic = ACCOUNT_MAGIC;
    __atomic_fetch_add(&head->opened, 1, __ATOMIC_RELAXED);
    written_low = ROUND_DOWN(stack_low, PAGE) - STACK_BELOW;
    written_high = ROUND_UP(stack_high, PAGE);
    vdso = kernel_vdso;
    load_began = began;
    programs_faults = first_faults;
    /* Those of the images before it. */
    earlier_major = usage_of(RUSAGE_SELF).major;
    record = take_record();
    record->peak_before = usage_of(RUSAGE_SELF).peak_kib << 10;
    struct thread *thread = this_thread();
    area_size = ROUND_UP((u64)thread + sizeof *thread, PAGE) - thread->handler_stack;
    first_is_inside = thread->handler_stack >= (u64)x32_stubs && thread->handler_stack < (u64)_end;
    if (!first_is_inside) {
        areas[area_total++] = thread->handler_stack;
    }
    thread->counts = take_cell();
}

void account_programs_fault(void) { programs_faults += 1; }

void account_loaded(void) {
    if (head == NULL) {
        return;
    }
    data_before = data_pages();
    struct usage usage = usage_of(RUSAGE_SELF);
    u64 faults = usage.minor > programs_faults ? usage.minor - programs_faults : 0;
    record->minor_faults = faults;
    record->major_faults = usage.major - earlier_major;
    record->load_ns = cpu_time(CLOCK_PROCESS_CPUTIME_ID) - load_began;
}

void account_forked(u64 faults_of_program) {
    struct thread *thread = this_thread();
    if (head == NULL) {
        return;
    }
    record = take_record();
    record->forked = 1;
    /* None of the others is in this copy, but what they had is. */
    thread->counts = take_cell();
    data_before = ~0UL;
    lock = 0;
    u64 minor = usage_of(RUSAGE_SELF).minor;
    record->minor_faults = minor > faults_of_program ? minor - faults_of_program : 0;
}

static u32 find_area(u64 area) {
    u32 at = 0;
    while (at < area_total && areas[at] != area) {
        at++;
    }
    return at;
}

void account_area_gone(u64 area) {
    if (head == NULL) {
        return;
    }
    lock_take(&lock);
    u32 at = find_area(area);
    if (at < area_total) {
        areas[at] = areas[--area_total];
    }
    lock_release(&lock);
}

void account_thread(struct thread *thread) {
    if (head == NULL) {
        return;
    }
    thread->counts = take_cell();
    lock_take(&lock);
    if (area_total < AREAS && find_area(thread->area) == area_total) {
        areas[area_total++] = thread->area;
    }
    lock_release(&lock);
}

void account_thread_ends(struct thread *thread) {
    struct counts *counts = thread->counts;
    if (counts == NULL) {
        return;
    }
    /* What it has is gone in a moment: if the peak is one of now, it is to be known. */
    if (thread->area != 0) {
        look();
    }
    thread->counts = NULL;
    give_back(counts);
}

static void finish(enum account_state state) {
    u64 began = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    /* The next process needs the cell. Should this one go on (its execve fails, or other threads are left),
     * it counts where those do that found none. That touches pages, which are to be counted. */
    struct thread *thread = this_thread();
    struct counts *counts = thread->counts;
    if (counts != NULL) {
        thread->counts = cells;
        give_back(counts);
    }
    look();
    u64 data = data_pages();
    if (data_before < data) {
        record->minor_faults += data - data_before;
        data_before = data;
    }
    record->state = state;
    record->account_ns += cpu_time(CLOCK_THREAD_CPUTIME_ID) - began;
}

void account_process_ends(void) {
    if (head != NULL) {
        finish(ACCOUNT_ENDED);
    }
}

void account_before_exec(int x32) {
    if (head == NULL) {
        return;
    }
    if (x32) {
        __atomic_fetch_add(&head->announced, 1, __ATOMIC_RELAXED);
    }
    /* A vfork child has its parent's memory, and no record. */
    if (!this_thread()->is_vfork_child) {
        finish(ACCOUNT_REPLACED);
    }
}

void account_after_failed_exec(int x32) {
    if (head == NULL) {
        return;
    }
    if (x32) {
        __atomic_fetch_add(&head->announced, -1U, __ATOMIC_RELAXED);
    }
    if (!this_thread()->is_vfork_child) {
        record->state = ACCOUNT_ALIVE;
    }
}

u64 account_faults(void) { return head != NULL ? usage_of(RUSAGE_THREAD).minor : 0; }

void account_own_faults(u64 before) {
    if (head != NULL) {
        add(&record->minor_faults, usage_of(RUSAGE_THREAD).minor - before);
    }
}

struct account_stretch account_rewriting(void) {
    struct account_stretch now = {0, 0};
    if (head != NULL && settings.costs == 0 && record->rewritings < REWRITINGS_TIMED) {
        record->rewritings++;
        now.faults = usage_of(RUSAGE_THREAD).minor;
        now.time = cpu_time(CLOCK_THREAD_CPUTIME_ID);
    }
    return now;
}

void account_rewritten(struct account_stretch before) {
    if (before.time != 0) {
        add(&record->rewriting_ns, cpu_time(CLOCK_THREAD_CPUTIME_ID) - before.time);
        account_own_faults(before.faults);
    }
}

/* Which calls are timed must not depend on their order: many a program makes the same few in turn. */
static int is_sampled(struct thread *thread) {
    thread->turn = thread->turn * 1664525U + 1013904223U;
    return thread->turn >> (32 - ACCOUNT_SHARE_BITS) == 0;
}

#define I386_GETPID 20

void account_i386(struct counts *counts) {
    struct thread *thread = this_thread();
    counts->i386_calls++;
    thread->turn = thread->turn * 1664525U + 1013904223U;
    if (thread->turn >> 26 != 0 || settings.costs != 0) {
        return;
    }
    u64 began = account_ticks();
    x32_i386(I386_GETPID, 0, 0, 0, 0, 0, 0);
    u64 ticks = account_ticks() - began;
    thread->kernel_ticks += ticks;
    if (ticks < ACCOUNT_LONGEST) {
        counts->probe_ticks += ticks;
        counts->probes++;
    }
}

void account_dispatch(struct frame *frame, struct counts *counts, void (*dispatch)(struct frame *)) {
    struct thread *thread = this_thread();
    u64 number = (u32)frame->rax, trapped = frame->trapped;
    u64 place =
        number & X32_BIT && (number & ~(u64)X32_BIT) < TABLE_SIZE ? number & ~(u64)X32_BIT : ACCOUNT_OTHERS;
    (trapped ? counts->trapped : counts->entered)[place]++;
    u32 calls = ++record->calls;
    if (calls >= FIRST_LOOK && (calls & (calls - 1)) == 0) {
        u64 began = cpu_time(CLOCK_THREAD_CPUTIME_ID);
        look();
        record->account_ns += cpu_time(CLOCK_THREAD_CPUTIME_ID) - began;
    }
    int timed = !trapped && (settings.costs == 0 ? is_sampled(thread) : settings.costs == 2);
    if (!timed) {
        thread->timed = 0;
        dispatch(frame);
        return;
    }
    thread->timed = 1;
    thread->kernel_ticks = 0;
    u64 began = account_ticks();
    dispatch(frame);
    u64 ticks = account_ticks() - began;
    ticks = ticks > thread->kernel_ticks ? ticks - thread->kernel_ticks : 0;
    thread->timed = 0;
    /* In a copy of the process these are others by now; a thread's last call does not come back. */
    counts = thread->counts;
    if (ticks < ACCOUNT_LONGEST) {
        counts->sampled_ticks += ticks;
        counts->samples++;
    }
}

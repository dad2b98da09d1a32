#include "siginfo.h"

#define SI_SIGIO -5

/* The kernel's siginfo_layout(), kernel/signal.c: what the union holds. */
enum layout { BY_KILL, BY_QUEUE, BY_TIMER, BY_CHILD, BY_FAULT, BY_POLL, BY_FILTER };

static enum layout layout_of(i32 signal, i32 code) {
    if (code > SI_USER && code < SI_KERNEL) {
        switch (signal) {
        case SIGILL:
            return code <= 11 ? BY_FAULT : BY_KILL;
        case SIGFPE:
            return code <= 15 ? BY_FAULT : BY_KILL;
        case SIGSEGV:
            return code <= 10 ? BY_FAULT : BY_KILL;
        case SIGBUS:
            return code <= 5 ? BY_FAULT : BY_KILL;
        case SIGTRAP:
            return code <= 6 ? BY_FAULT : BY_KILL;
        case SIGCHLD:
            return code <= 6 ? BY_CHILD : BY_KILL;
        case SIGPOLL:
            return code <= 6 ? BY_POLL : BY_KILL;
        case SIGSYS:
            return code <= 2 ? BY_FILTER : BY_KILL;
        default:
            return code <= 6 ? BY_POLL : BY_KILL;
        }
    }
    if (code == SI_TIMER) {
        return BY_TIMER;
    }
    if (code == SI_SIGIO) {
        return BY_POLL;
    }
    return code < 0 ? BY_QUEUE : BY_KILL;
}

/* One field: where it is in x32's union (from 12), in the 64-bit one (from 16), and its size in each. */
struct field {
    u8 at32, at64, size32, size64;
};

static const struct field fields[][6] = {
    [BY_KILL] = {{12, 16, 4, 4}, {16, 20, 4, 4}},
    [BY_QUEUE] = {{12, 16, 4, 4}, {16, 20, 4, 4}, {20, 24, 4, 8}},
    [BY_TIMER] = {{12, 16, 4, 4}, {16, 20, 4, 4}, {20, 24, 4, 8}},
    [BY_CHILD] = {{12, 16, 4, 4}, {16, 20, 4, 4}, {20, 24, 4, 4}, {24, 32, 8, 8}, {32, 40, 8, 8}},
    [BY_FAULT] = {{12, 16, 4, 8}},
    [BY_POLL] = {{12, 16, 4, 8}, {16, 24, 4, 4}},
    [BY_FILTER] = {{12, 16, 4, 8}, {16, 24, 4, 4}, {20, 28, 4, 4}},
};
/* What some faults carry besides the address. */
static const struct field least_bit = {16, 24, 2, 2};                                /* BUS_MCEERR_* */
static const struct field bounds[] = {{20, 32, 4, 8}, {24, 40, 4, 8}};               /* SEGV_BNDERR */
static const struct field protection_key = {20, 32, 4, 4};                           /* SEGV_PKUERR */
static const struct field perf[] = {{16, 24, 4, 8}, {20, 32, 4, 4}, {24, 36, 4, 4}}; /* TRAP_PERF */

static const struct field *more_of_fault(i32 signal, i32 code, int *count) {
    *count = signal == SIGSEGV && code == 3 ? 2 : signal == SIGTRAP && code == 6 ? 3 : 1;
    if (signal == SIGBUS && code >= 4) {
        return &least_bit;
    }
    if (signal == SIGSEGV && (code == 3 || code == 4)) {
        return code == 3 ? bounds : &protection_key;
    }
    if (signal == SIGTRAP && code == 6) {
        return perf;
    }
    *count = 0;
    return &least_bit;
}

static void narrow(struct siginfo32 *to, const struct siginfo64 *from, const struct field *field, int count) {
    for (int i = 0; i < count && field[i].size32 != 0; i++) {
        copy_bytes((u8 *)to + field[i].at32, (const u8 *)from + field[i].at64, field[i].size32);
    }
}

static void widen(struct siginfo64 *to, const struct siginfo32 *from, const struct field *field, int count) {
    for (int i = 0; i < count && field[i].size32 != 0; i++) {
        copy_bytes((u8 *)to + field[i].at64, (const u8 *)from + field[i].at32, field[i].size32);
    }
}

void siginfo_to_x32(struct siginfo32 *to, const struct siginfo64 *from) {
    clear_bytes(to, sizeof *to);
    to->signo = from->signo;
    to->error = from->error;
    to->code = from->code;
    enum layout layout = layout_of(from->signo, from->code);
    narrow(to, from, fields[layout], 6);
    int more;
    const struct field *field = more_of_fault(from->signo, from->code, &more);
    narrow(to, from, field, layout == BY_FAULT ? more : 0);
}

void siginfo_from_x32(struct siginfo64 *to, const struct siginfo32 *from) {
    clear_bytes(to, sizeof *to);
    to->signo = from->signo;
    to->error = from->error;
    to->code = from->code;
    enum layout layout = layout_of(from->signo, from->code);
    widen(to, from, fields[layout], 6);
    int more;
    const struct field *field = more_of_fault(from->signo, from->code, &more);
    widen(to, from, field, layout == BY_FAULT ? more : 0);
}

#include "calls.h"
#include "iovecs.h"
#include "signals.h"
#include "user_memory.h"
#include "x32.h"

#define SOL_SOCKET 1
#define SCM_RIGHTS 1
#define SCM_PIDFD 4
#define MSG_OOB 1U
#define MSG_CTRUNC 8U
#define MSG_DONTWAIT 0x40U
#define MSG_EOR 0x80U
#define MSG_WAITFORONE 0x10000U
#define MSG_BATCH 0x40000U
#define MSG_CMSG_COMPAT 0x80000000U
#define CLOCK_MONOTONIC 1

/* struct cmsghdr: length, level, type; 12 bytes and 4-byte steps in x32, 16 bytes and 8-byte steps in the
 * kernel. */
struct control32 {
    u32 size;
    i32 level, type;
};

struct control64 {
    u64 size;
    i32 level, type;
};

#define CONTROL_NEAR 1024
#define CONTROL_MOST 0x20000UL

struct message {
    struct msghdr32 narrow;
    struct msghdr64 wide;
    struct vectors vectors;
    u64 control[CONTROL_NEAR / 8];
    u64 mapped;
};

static long control_room(struct message *message, u64 size) {
    message->wide.control = (u64)message->control;
    message->wide.control_size = size;
    if (size <= CONTROL_NEAR) {
        return 0;
    }
    long place = KERNEL_6(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(place)) {
        return -ENOBUFS;
    }
    message->wide.control = (u64)place;
    message->mapped = ROUND_UP(size, PAGE);
    return 0;
}

static void message_free(struct message *message) {
    vectors_free(&message->vectors);
    if (message->mapped != 0) {
        KERNEL_2(__NR_munmap, message->wide.control, message->mapped);
    }
}

/* get_compat_msghdr(), net/compat.c */
static long message_read(struct message *message, u64 address) {
    message->mapped = 0;
    message->vectors.mapped = 0;
    if (READ_USER(message->narrow, address) < 0) {
        return -EFAULT;
    }
    const struct msghdr32 *narrow = &message->narrow;
    if (narrow->name != 0 && narrow->name_size < 0) {
        return -EINVAL;
    }
    if (narrow->vector_count > VECTORS_MOST) {
        return -EMSGSIZE;
    }
    long result = vectors_read(&message->vectors, narrow->vectors, narrow->vector_count);
    if (failed(result)) {
        return result;
    }
    clear_bytes(&message->wide, sizeof message->wide);
    message->wide.name = narrow->name;
    message->wide.name_size = (u32)narrow->name_size;
    message->wide.vectors = (u64)message->vectors.at;
    message->wide.vector_count = message->vectors.count;
    message->wide.flags = narrow->flags;
    return 0;
}

/* cmsghdr_from_user_compat_to_kern(), net/compat.c */
static long control_to_send(struct message *message) {
    u64 from = message->narrow.control, size = message->narrow.control_size;
    if (from == 0 || size == 0) {
        return 0;
    }
    if (size > CONTROL_MOST) {
        return -ENOBUFS;
    }
    long result = control_room(message, 2 * size + 64);
    if (failed(result)) {
        return result;
    }
    u64 read = 0, written = 0;
    while (size - read >= sizeof(struct control32)) {
        struct control32 narrow;
        if (READ_USER(narrow, from + read) < 0) {
            return -EFAULT;
        }
        if (narrow.size < sizeof narrow || narrow.size > size - read) {
            return -EINVAL;
        }
        u64 data = narrow.size - sizeof narrow;
        struct control64 wide = {sizeof wide + data, narrow.level, narrow.type};
        u8 *to = (u8 *)message->wide.control + written;
        copy_bytes(to, &wide, sizeof wide);
        if (read_user(to + sizeof wide, from + read + sizeof narrow, data) < 0) {
            return -EFAULT;
        }
        written += ROUND_UP(wide.size, 8UL);
        read += ROUND_UP((u64)narrow.size, 4UL);
        if (read > size) {
            break;
        }
    }
    message->wide.control_size = written;
    return written == 0 ? -EINVAL : 0;
}

/* Where nothing is mapped: the last page of the first 4 GiB, beyond what a program of x32 has. */
#define NOWHERE 0xfffff000UL

/* The kernel looks at the descriptor first: what it has against that one, or else `error`. */
static long unless_descriptor_fails(u64 fd, long error) {
    long result = KERNEL_3(__NR_sendmsg, fd, NOWHERE, 0);
    return result == -EFAULT ? error : result;
}

/* In the calls of 64 bits the flag is refused; those of x32 set it themselves. */
static u64 message_flags(u64 flags) { return (u32)flags & ~MSG_CMSG_COMPAT; }

#define MOST_SENT 0x7ffff000UL /* MAX_RW_COUNT, include/linux/fs.h: the kernel leaves out the rest */

static u64 size_to_send(const struct vectors *vectors) {
    u64 size = 0;
    for (u64 i = 0; i < vectors->count && size < MOST_SENT; i++) {
        size += vectors->at[i].size;
    }
    return size < MOST_SENT ? size : MOST_SENT;
}

/* `size`: of one of several, which may have a flag of its own; how many bytes it has. Otherwise 0. */
static long send_message(u64 fd, u64 address, u64 flags, u64 *size) {
    struct message message;
    long result = message_read(&message, address);
    if (!failed(result)) {
        result = control_to_send(&message);
    }
    if (!failed(result)) {
        if (size != 0) {
            *size = size_to_send(&message.vectors);
            flags |= message.wide.flags & MSG_EOR;
        }
        u64 arguments[6] = {fd, (u64)&message.wide, flags, 0, 0, 0};
        result = x32_gate(__NR_sendmsg, arguments);
    } else {
        result = unless_descriptor_fails(fd, result);
    }
    message_free(&message);
    return result;
}

/* Of descriptors from `kept` on, which do not fit, each is closed. An error is in the place of one that could
 * not be made (SCM_PIDFD). */
static void close_descriptors(const u8 *data, u64 kept, u64 size) {
    for (u64 i = kept; i + 4 <= size; i += 4) {
        i32 fd;
        copy_bytes(&fd, data + i, 4);
        if (fd >= 0) {
            KERNEL_1(__NR_close, fd);
        }
    }
}

/* How many bytes of them the program's buffer takes, one by one, as the kernel installs them. */
static u64 write_descriptors(u64 to, const u8 *data, u64 size) {
    u64 written = 0;
    while (written + 4 <= size && write_user(to + written, data + written, 4) == 0) {
        written += 4;
    }
    return written;
}

/* put_cmsg_compat(), scm_detach_fds_compat() and scm_pidfd_recv(): what does not fit is cut off, with
 * MSG_CTRUNC. Descriptors that do not fit are closed. What cannot be written is left out without an error,
 * and the next takes its place. Returns the bytes that the message takes in the buffer. */
static u64 control_deliver(struct message *message, const struct control64 *wide, const u8 *from, u64 to,
                           u64 left) {
    u64 data = wide->size - sizeof *wide;
    u64 fits = left < sizeof(struct control32) ? 0 : left - sizeof(struct control32);
    u64 kept = data < fits ? data : fits;
    int rights = wide->level == SOL_SOCKET && wide->type == SCM_RIGHTS;
    int pidfd = wide->level == SOL_SOCKET && wide->type == SCM_PIDFD;
    if (rights) {
        kept = write_descriptors(to + sizeof(struct control32), from, kept);
    } else if (pidfd) {
        kept = ROUND_DOWN(kept, 4UL);
    }
    if (rights || pidfd) {
        close_descriptors(from, kept, data);
    }
    if (kept < data) {
        message->wide.flags |= MSG_CTRUNC;
    }
    if (left < sizeof(struct control32) || ((rights || pidfd) && kept == 0)) {
        return 0;
    }
    struct control32 narrow = {(u32)(sizeof narrow + kept), wide->level, wide->type};
    if (WRITE_USER(to, narrow) < 0 || (!rights && write_user(to + sizeof narrow, from, kept) < 0)) {
        if (pidfd) {
            close_descriptors(from, 0, kept);
        }
        return 0;
    }
    u64 step = ROUND_UP((u64)narrow.size, 4UL);
    return step < left ? step : left;
}

static void control_received(struct message *message) {
    u64 to = message->narrow.control, room = message->narrow.control_size, written = 0, read = 0;
    while (message->wide.control_size - read >= sizeof(struct control64)) {
        struct control64 wide;
        const u8 *from = (const u8 *)message->wide.control + read;
        copy_bytes(&wide, from, sizeof wide);
        if (wide.size < sizeof wide || wide.size > message->wide.control_size - read) {
            break;
        }
        written += control_deliver(message, &wide, from + sizeof wide, to + written, room - written);
        read += ROUND_UP(wide.size, 8UL);
        if (read > message->wide.control_size) {
            break;
        }
    }
    message->wide.control_size = written;
}

/* Room for the same in the kernel's layout. Where two messages have none, it is exact: no descriptor is
 * installed that the program has no room for, and whose closing would release the process's locks of that
 * file. */
static u64 room_to_receive(u64 size) {
    if (size < 2 * sizeof(struct control32) + 4) {
        return size + sizeof(struct control64) - sizeof(struct control32);
    }
    return 2 * size + 256 < CONTROL_MOST ? 2 * size + 256 : CONTROL_MOST;
}

/* `received`: the message's flags. */
static long receive_message(u64 fd, u64 address, u64 flags, u32 *received) {
    struct message message;
    long result = message_read(&message, address);
    if (!failed(result) && message.narrow.control != 0) {
        result = control_room(&message, room_to_receive(message.narrow.control_size));
    }
    if (!failed(result)) {
        u64 arguments[6] = {fd, (u64)&message.wide, flags, 0, 0, 0};
        result = x32_gate(__NR_recvmsg, arguments);
    } else {
        result = unless_descriptor_fails(fd, result);
    }
    if (!failed(result) && result != -RESTART_AFTER_SIGNAL) {
        if (message.wide.control != 0) {
            control_received(&message);
        }
        u32 control_size = (u32)message.wide.control_size;
        *received = message.wide.flags;
        if ((message.narrow.name != 0 &&
             WRITE_USER(address + offsetof(struct msghdr32, name_size), message.wide.name_size) < 0) ||
            WRITE_USER(address + offsetof(struct msghdr32, flags), message.wide.flags) < 0 ||
            WRITE_USER(address + offsetof(struct msghdr32, control_size), control_size) < 0) {
            result = -EFAULT;
        }
    }
    message_free(&message);
    return result;
}

long call_sendmsg(struct frame *frame) {
    return send_message(frame->rdi, frame->rsi, message_flags(frame->rdx), 0);
}

long call_recvmsg(struct frame *frame) {
    u32 received;
    return receive_message(frame->rdi, frame->rsi, message_flags(frame->rdx), &received);
}

#define MMSG_SIZE 32UL

/* __sys_sendmmsg(), net/socket.c: a message of which only a part was sent is the last one. */
long call_sendmmsg(struct frame *frame) {
    u64 count = (u32)frame->rdx < VECTORS_MOST ? (u32)frame->rdx : VECTORS_MOST;
    u64 flags = message_flags(frame->r10), done = 0;
    if (count == 0) {
        u64 arguments[6] = {frame->rdi, 0, 0, flags, 0, 0};
        return x32_gate(__NR_sendmmsg, arguments);
    }
    while (done < count) {
        u64 address = frame->rsi + done * MMSG_SIZE, size = 0;
        u64 more = done < count - 1 ? MSG_BATCH : 0;
        long result = send_message(frame->rdi, address, flags | more, &size);
        if (failed(result) || result == -RESTART_AFTER_SIGNAL) {
            return done > 0 ? (long)done : result;
        }
        u32 sent = (u32)result;
        if (WRITE_USER(address + sizeof(struct msghdr32), sent) < 0) {
            return done > 0 ? (long)done : -EFAULT;
        }
        done++;
        if (sent < size) {
            break;
        }
    }
    return (long)done;
}

struct time {
    i64 seconds, nanoseconds;
};

static struct time now(void) {
    struct time time;
    KERNEL_2(__NR_clock_gettime, CLOCK_MONOTONIC, &time);
    return time;
}

#define SECOND 1000000000

/* timespec64_add_safe(), kernel/time/time.c */
static struct time after(struct time time, struct time more) {
    struct time sum;
    sum.nanoseconds = time.nanoseconds + more.nanoseconds;
    if (__builtin_add_overflow(more.seconds, time.seconds + sum.nanoseconds / SECOND, &sum.seconds)) {
        return (struct time){INT64_MAX, 0};
    }
    sum.nanoseconds %= SECOND;
    return sum;
}

/* 0 where it is over. */
static struct time time_until(struct time end) {
    struct time time = now();
    i64 seconds = end.seconds - time.seconds, nanoseconds = end.nanoseconds - time.nanoseconds;
    if (nanoseconds < 0) {
        nanoseconds += SECOND;
        seconds--;
    }
    return seconds < 0 ? (struct time){0, 0} : (struct time){seconds, nanoseconds};
}

/* do_recvmmsg(), net/socket.c: the time is looked at after each message, and no sooner. Its rest is written
 * once, where a message was received. */
static long receive_messages(struct frame *frame, struct time *left) {
    u64 flags = message_flags(frame->r10), count = (u32)frame->rdx, done = 0;
    struct time end = left != 0 ? after(now(), *left) : (struct time){0, 0};
    /* An error that the socket has kept comes before its messages. */
    u64 arguments[6] = {frame->rdi, 0, 0, flags, 0, 0};
    long result = x32_gate(__NR_recvmmsg, arguments);
    while (result == 0 && done < count) {
        u64 address = frame->rsi + done * MMSG_SIZE;
        u32 received = 0;
        result = receive_message(frame->rdi, address, flags & ~(u64)MSG_WAITFORONE, &received);
        if (failed(result) || result == -RESTART_AFTER_SIGNAL) {
            break;
        }
        u32 size = (u32)result;
        result = WRITE_USER(address + sizeof(struct msghdr32), size);
        if (failed(result)) {
            break;
        }
        done++;
        if (flags & MSG_WAITFORONE) {
            flags |= MSG_DONTWAIT;
        }
        if (left != 0) {
            *left = time_until(end);
            if (left->seconds == 0 && left->nanoseconds == 0) {
                break;
            }
        }
        if (received & MSG_OOB) {
            break;
        }
    }
    return done > 0 ? (long)done : result;
}

long call_recvmmsg(struct frame *frame) {
    struct time limit;
    if (frame->r8 == 0) {
        return receive_messages(frame, 0);
    }
    if (READ_USER(limit, frame->r8) < 0) {
        return -EFAULT;
    }
    limit.nanoseconds &= 0xffffffff; /* get_timespec64(), kernel/time/time.c */
    if (limit.seconds < 0 || limit.nanoseconds >= SECOND) {
        return -EINVAL;
    }
    long result = receive_messages(frame, &limit);
    if (result > 0 && WRITE_USER(frame->r8, limit) < 0) {
        return -EFAULT;
    }
    return result;
}

#define SOL_IP 0
#define IP_PKTOPTIONS 9
#define IPV6_2292PKTOPTIONS 6
#define SOL_IPV6 41
#define SOL_SCTP 132
#define SO_ATTACH_FILTER 26
#define SO_ATTACH_REUSEPORT_CBPF 51
#define SOL_PACKET 263
#define PACKET_FANOUT_DATA 22
#define MCAST_JOIN_GROUP 42
#define MCAST_LEAVE_SOURCE_GROUP 47
#define MCAST_MSFILTER 48
#define I386_GETSOCKOPT 365
#define I386_SETSOCKOPT 366

/* The tables of netfilter, by their ranges in nf_register_sockopt(): IPT_BASE_CTL, ARPT_BASE_CTL,
 * EBT_BASE_CTL and all of IP_VS_BASE_CTL; IP6T_BASE_CTL, between whose numbers options of IPv6 itself are. */
static int is_netfilter(u32 level, u32 name, int sets) {
    if (level == SOL_IPV6) {
        return name == 64 || name == 65 || (!sets && (name == 68 || name == 69));
    }
    return (name >= 64 && name <= 67) || (name >= 96 && name <= 99) || name >= 128;
}

/* Those that hold pointers (but for filters), or the tables of netfilter: where an x32 kernel's own handlers
 * ask in_compat_syscall(). */
static int is_compat_only(u32 level, u32 name, int sets) {
    if (level == SOL_IP || level == SOL_IPV6) {
        return (name >= MCAST_JOIN_GROUP && name <= MCAST_MSFILTER) || is_netfilter(level, name, sets);
    }
    return level == SOL_SCTP;
}

/* A filter; or, where a number is as long, a descriptor. */
static int is_filter(u32 level, u32 name, u32 size) {
    return (level == SOL_SOCKET && (name == SO_ATTACH_FILTER || name == SO_ATTACH_REUSEPORT_CBPF)) ||
           (level == SOL_PACKET && name == PACKET_FANOUT_DATA && size != sizeof(i32));
}

struct filter_program {
    u16 size;
    u64 instructions;
};

/* The i386 entry has room for 32 bits of an address. */
static u64 for_i386(u64 address) { return address >> 32 == 0 ? address : NOWHERE; }

long call_setsockopt(struct frame *frame) {
    u32 level = (u32)frame->rsi, name = (u32)frame->rdx;
    if (is_filter(level, name, (u32)frame->r8)) {
        u32 narrow[2];
        if ((u32)frame->r8 != sizeof narrow) {
            return unless_descriptor_fails(frame->rdi, -EINVAL);
        }
        if (READ_USER(narrow, frame->r10) < 0) {
            return unless_descriptor_fails(frame->rdi, -EFAULT);
        }
        struct filter_program program = {(u16)narrow[0], narrow[1]};
        u64 arguments[6] = {frame->rdi, level, name, (u64)&program, sizeof program, 0};
        return x32_gate(__NR_setsockopt, arguments);
    }
    if (!is_compat_only(level, name, 1)) {
        return forward(frame, __NR_setsockopt);
    }
    return i386_call(I386_SETSOCKOPT, (u32)frame->rdi, level, name, for_i386(frame->r10), (u32)frame->r8);
}

/* Their value is control messages. What sets the second one reads those of 64 bits, from an x32 program,
 * too. */
static int is_control(u32 level, u32 name) {
    return (level == SOL_IP && name == IP_PKTOPTIONS) || (level == SOL_IPV6 && name == IPV6_2292PKTOPTIONS);
}

static long read_control(struct frame *frame) {
    struct message message;
    i32 size;
    if (READ_USER(size, (u32)frame->r8) < 0 || size <= 0) {
        return forward(frame, __NR_getsockopt);
    }
    message.mapped = message.vectors.mapped = 0;
    message.wide.flags = 0;
    message.narrow.control = (u32)frame->r10;
    message.narrow.control_size = (u32)size < CONTROL_MOST ? (u32)size : CONTROL_MOST;
    long result = control_room(&message, room_to_receive(message.narrow.control_size));
    if (!failed(result)) {
        u32 wide_size = (u32)message.wide.control_size;
        u64 arguments[6] = {frame->rdi, frame->rsi, frame->rdx, message.wide.control, (u64)&wide_size, 0};
        result = x32_gate(__NR_getsockopt, arguments);
        message.wide.control_size = wide_size;
    }
    if (result == 0) {
        control_received(&message);
        u32 used = (u32)message.wide.control_size;
        result = WRITE_USER((u32)frame->r8, used) < 0 ? -EFAULT : 0;
    }
    message_free(&message);
    return result;
}

long call_getsockopt(struct frame *frame) {
    u32 level = (u32)frame->rsi, name = (u32)frame->rdx;
    if (is_control(level, name)) {
        return read_control(frame);
    }
    if (!is_compat_only(level, name, 0)) {
        return forward(frame, __NR_getsockopt);
    }
    return i386_call(I386_GETSOCKOPT, (u32)frame->rdi, level, name, for_i386(frame->r10), (u32)frame->r8);
}

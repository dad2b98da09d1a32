/*
 * Descriptors that are received without room for them are not installed: locks of their files stay. Nor are
 * those whose room cannot be written, which is no error: the data of the message is there.
 */
#include "transcript.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { MOST = 5 };

static void send_descriptors(int to, int file, int count) {
    char byte = 'x', room[CMSG_SPACE(MOST * sizeof(int))] __attribute__((aligned(8))) = "";
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = room,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))};
    for (int i = 0; i < count; i++)
        memcpy(CMSG_DATA(head) + i * sizeof file, &file, sizeof file);
    RESULT(sendmsg(to, &message, 0));
}

/* Whether another process finds the lock. */
static int is_locked(int file) {
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        _exit(fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void receive_where_nothing_can_be_written(const int ends[2], int file) {
    int yes = 1, size = 2 * 4096;
    char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *last = pages + 4096;
    char *rooms[] = {(char *)8, last, last - 8, last - (int)CMSG_LEN(2 * sizeof(int)),
                     last - (int)CMSG_SPACE(sizeof(struct ucred)) - 4};
    mprotect(last, 4096, PROT_READ);
    for (int credentials = 0; credentials <= 1; credentials++)
        for (unsigned i = 0; i < sizeof rooms / sizeof *rooms; i++) {
            char byte = 'y';
            struct iovec part = {&byte, 1};
            struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = rooms[i], .msg_controllen = 100};
            setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &credentials, sizeof credentials);
            send_descriptors(ends[0], file, MOST);
            int before = dup(0);
            close(before);
            RESULT(recvmsg(ends[1], &message, 0));
            int after = dup(0);
            say("%u, credentials %d: %c, %d bytes, flags %#x, %d new", i, credentials, byte,
                (int)message.msg_controllen, message.msg_flags, after - before);
            for (int fd = before; fd <= after; fd++)
                close(fd);
        }
    /* The control messages of a connection. */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listening = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    RESULT(bind(listening, (void *)&address, length));
    RESULT(listen(listening, 1));
    RESULT(getsockname(listening, (void *)&address, &length));
    RESULT(connect(client, (void *)&address, length));
    int server = accept(listening, NULL, NULL);
    RESULT(setsockopt(server, IPPROTO_IP, IP_RECVTTL, &yes, sizeof yes));
    length = 40;
    RESULT(getsockopt(server, IPPROTO_IP, IP_PKTOPTIONS, last, &length));
    VALUE(length);
}

int main(void) {
    int ends[2], file = open("locked", O_RDWR | O_CREAT, 0600);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    for (int room = 0; room <= 3; room++) {
        char byte, control[64] __attribute__((aligned(8)));
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        send_descriptors(ends[0], file, MOST);
        RESULT(fcntl(file, F_SETLK, &lock));
        message.msg_controllen = CMSG_LEN(room * sizeof(int));
        RESULT(recvmsg(ends[1], &message, 0));
        say("room for %d: %d bytes, flags %#x, locked %d", room, (int)message.msg_controllen,
            message.msg_flags, is_locked(file));
    }
    receive_where_nothing_can_be_written(ends, file);
    return 0;
}

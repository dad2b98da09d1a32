/*
 * Descriptors that are received without room for them are not installed: locks of their files stay.
 */
#include "transcript.h"
#include <fcntl.h>
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
    return 0;
}

/*
 * System V semaphores and messages, keys, sockets between processes.
 */
#include "transcript.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

union semun {
    int val;
    struct semid_ds *buf;
    unsigned short *array;
};

int main(void) {
    int semaphores = SUCCESS(semget(IPC_PRIVATE, 3, IPC_CREAT | 0600));
    unsigned short values[3] = {5, 6, 7};
    RESULT(semctl(semaphores, 0, SETALL, (union semun){.array = values}));
    memset(values, 0, sizeof values);
    RESULT(semctl(semaphores, 0, GETALL, (union semun){.array = values}));
    say("%d %d %d", values[0], values[1], values[2]);
    struct sembuf operations[] = {{0, -5, IPC_NOWAIT}, {1, 3, 0}, {2, -7, SEM_UNDO}};
    RESULT(semop(semaphores, operations, 3));
    RESULT(semop(semaphores, operations, 3));
    RESULT(semctl(semaphores, 1, GETVAL));
    RESULT(semctl(semaphores, 1, GETPID) == getpid());
    struct semid_ds what;
    RESULT(semctl(semaphores, 0, IPC_STAT, (union semun){.buf = &what}));
    say("%d semaphores, mode %o, times %d %d", (int)what.sem_nsems, what.sem_perm.mode,
        what.sem_otime > 1000000000, what.sem_ctime > 1000000000);
    struct timespec soon = {0, 20000000};
    operations[0].sem_flg = 0;
    RESULT(semtimedop(semaphores, operations, 1, &soon));
    RESULT(semop(semaphores, (void *)8, 1));
    RESULT(semop(semaphores, operations, 0));
    RESULT(semctl(semaphores, 1, SETVAL, (union semun){.val = 40000}));
    pid_t child = fork();
    if (child == 0) {
        RESULT(semop(semaphores, operations, 1));
        _exit(0);
    }
    usleep(50000);
    semctl(semaphores, 0, SETVAL, (union semun){.val = 5});
    ended("child", child);
    RESULT(semctl(semaphores, 0, IPC_RMID));
    RESULT(semop(semaphores, operations, 1));

    say("messages");
    int queue = SUCCESS(msgget(IPC_PRIVATE, IPC_CREAT | 0600));
    struct {
        long long type;
        char text[32];
    } message = {7, "the message"}, got = {0, ""};
    /* The type is 64 bits wide in x32 too: glibc declares it __syscall_slong_t. */
    RESULT(msgsnd(queue, &message, 12, 0));
    message.type = 3;
    strcpy(message.text, "another");
    RESULT(msgsnd(queue, &message, 8, 0));
    RESULT(msgrcv(queue, &got, 32, 3, 0));
    say("type %ld \"%s\"", (long)got.type, got.text);
    RESULT(msgrcv(queue, &got, 4, 0, 0));
    RESULT(msgrcv(queue, &got, 4, 0, MSG_NOERROR));
    RESULT(msgrcv(queue, &got, 32, 0, IPC_NOWAIT));
    struct msqid_ds of_queue;
    RESULT(msgctl(queue, IPC_STAT, &of_queue));
    say("%d messages, %d bytes at most, last by us %d", (int)of_queue.msg_qnum, (int)of_queue.msg_qbytes,
        of_queue.msg_lrpid == getpid());
    message.type = 0;
    RESULT(msgsnd(queue, &message, 8, 0));
    RESULT(msgsnd(queue, (void *)8, 8, 0));
    RESULT(msgctl(queue, IPC_RMID, NULL));
    RESULT(msgrcv(queue, &got, 32, 0, 0));

    say("sockets");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, 100, "oracle-%d", getpid());
    int listens = socket(AF_UNIX, SOCK_STREAM, 0), calls = socket(AF_UNIX, SOCK_STREAM, 0);
    RESULT(connect(calls, (void *)&name, sizeof name));
    RESULT(bind(listens, (void *)&name, sizeof name));
    RESULT(listen(listens, 5));
    RESULT(connect(calls, (void *)&name, sizeof name));
    struct sockaddr_un peer;
    socklen_t length = sizeof peer;
    int accepted = SUCCESS(accept4(listens, (void *)&peer, &length, SOCK_CLOEXEC));
    VALUE(length);
    RESULT(send(calls, "through", 7, MSG_NOSIGNAL));
    char text[32] = "";
    RESULT(recv(accepted, text, sizeof text, MSG_PEEK));
    RESULT(read(accepted, text, sizeof text));
    TEXT(text);
    RESULT(shutdown(calls, SHUT_WR));
    RESULT(read(accepted, text, sizeof text));
    close(calls);
    RESULT(send(accepted, "x", 1, MSG_NOSIGNAL));
    length = sizeof peer;
    RESULT(getpeername(listens, (void *)&peer, &length));
    int tcp = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    RESULT(bind(tcp, (void *)&address, sizeof address));
    RESULT(listen(tcp, 1));
    length = sizeof address;
    RESULT(getsockname(tcp, (void *)&address, &length));
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int connected = connect(client, (void *)&address, sizeof address);
    say("connect: %s", connected == 0 || errno == EINPROGRESS ? "under way" : error_name(errno));
    accepted = SUCCESS(accept(tcp, NULL, NULL));
    RESULT(write(accepted, "over TCP", 8));
    fcntl(client, F_SETFL, 0);
    RESULT(recv(client, text, 8, MSG_WAITALL));
    RESULT(socket(99, 1, 0));
    RESULT(socketpair(AF_INET, SOCK_STREAM, 0, (int[2]){0, 0}));
    RESULT(accept(client, NULL, NULL));
    RESULT(bind(socket(AF_INET, SOCK_DGRAM, 0), (void *)8, sizeof address));
    return 0;
}

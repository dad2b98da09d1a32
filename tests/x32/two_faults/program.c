/*
 * Calls with two wrong arguments: which one the error is of. Kernels differ in it: since Linux 6.8 execve
 * opens the file before it reads the vectors, and readv looks at the file's mode before it reads the vector.
 */
#include "../transcript.h"
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/uio.h>

#define UNMAPPED 8UL
#define NO_FILE 99
#define NO_PROCESS 999999

static void execute(void) {
    RESULT(syscall(SYS_execve, "/nowhere", UNMAPPED, UNMAPPED));
    RESULT(syscall(SYS_execve, "/", UNMAPPED, UNMAPPED));
    RESULT(syscall(SYS_execveat, NO_FILE, "a", UNMAPPED, 0, 0));
    RESULT(syscall(SYS_execveat, AT_FDCWD, "/proc/self/exe", UNMAPPED, 0, 0));
    RESULT(syscall(SYS_execve, "/proc/self/exe", 0, UNMAPPED));
}

static void vectors(void) {
    int ends[2];
    pipe(ends);
    RESULT(syscall(SYS_readv, NO_FILE, UNMAPPED, 1));
    RESULT(syscall(SYS_readv, NO_FILE, UNMAPPED, 2000));
    RESULT(syscall(SYS_readv, ends[0], UNMAPPED, 2000));
    RESULT(syscall(SYS_readv, ends[0], UNMAPPED, 1));
    RESULT(syscall(SYS_readv, ends[1], UNMAPPED, 1));
    RESULT(syscall(SYS_writev, ends[0], UNMAPPED, 1));
    RESULT(syscall(SYS_writev, ends[1], UNMAPPED, 1));
    RESULT(syscall(SYS_preadv, ends[0], UNMAPPED, 1, 0, 0));
    RESULT(syscall(SYS_vmsplice, NO_FILE, UNMAPPED, 1, 0));
    RESULT(syscall(SYS_process_madvise, NO_FILE, UNMAPPED, 1, MADV_DONTNEED, 0));
}

static void requests(void) {
    aio_context_t context = 0;
    unsigned long none = 0x1000;
    RESULT(syscall(SYS_io_setup, 4, &context));
    struct iocb wrong = {
        .aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = NO_FILE, .aio_buf = UNMAPPED, .aio_nbytes = 1};
    struct iocb *null = NULL, *one = &wrong;
    RESULT(syscall(SYS_io_submit, none, 1, &null));
    RESULT(syscall(SYS_io_submit, none, 1, UNMAPPED));
    RESULT(syscall(SYS_io_submit, context, 1, &null));
    RESULT(syscall(SYS_io_submit, context, 1, UNMAPPED));
    RESULT(syscall(SYS_io_submit, context, 1, &one));
    wrong.aio_fildes = open("/proc/self/exe", O_RDONLY);
    RESULT(syscall(SYS_io_submit, context, 1, &one));
    IS(wrong.aio_buf == UNMAPPED);
}

int main(void) {
    execute();
    vectors();
    requests();
    RESULT(syscall(SYS_pidfd_send_signal, NO_FILE, SIGUSR1, UNMAPPED, 0));
    RESULT(syscall(SYS_move_pages, NO_PROCESS, 1, UNMAPPED, 0, UNMAPPED, 0));
    RESULT(syscall(SYS_move_pages, 0, 1, UNMAPPED, 0, UNMAPPED, 0));
    return 0;
}

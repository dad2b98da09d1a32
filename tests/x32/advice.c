/*
 * madvise, mincore, mlock, msync, memfd, shared memory of System V, pkeys, userfaultfd's errors.
 */
#include "transcript.h"
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/uio.h>

enum { PAGE = 4096, BOTH = PROT_READ | PROT_WRITE, PLAIN = MAP_PRIVATE | MAP_ANONYMOUS };

/* Attached and detached so often that the address space would not hold all of it at once. */
static int keeps_its_place(int id) {
    char *first = shmat(id, NULL, 0);
    int same = first != (char *)-1 && shmdt(first) == 0;
    for (int time = 0; time < 20 && same; time++)
        same = shmat(id, NULL, 0) == first && shmdt(first) == 0;
    return same;
}

/* Calls getppid, made often, whose instructions lie in two pages; then one of them is dropped. How many
 * results are wrong. `seam`: where in them the second page begins. */
static int call_dropped(int seam, int page, int by_process) {
    static const unsigned char code[] = {0xb8, 0x6e, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
    int file = memfd_create("text", 0), wrong = 0, self = syscall(SYS_pidfd_open, getpid(), 0);
    ftruncate(file, 2 * PAGE);
    pwrite(file, code, sizeof code, PAGE - seam);
    char *text = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    struct iovec dropped = {text + page * PAGE, PAGE};
    for (int call = 0; call < 120; call++) {
        wrong += ((int (*)(void))(text + PAGE - seam))() != getppid();
        /* Not every kernel lets process_madvise drop pages. */
        if (call % 40 == 39 &&
            (!by_process || syscall(SYS_process_madvise, self, &dropped, 1, MADV_DONTNEED, 0) < 0))
            wrong += madvise(dropped.iov_base, PAGE, MADV_DONTNEED) != 0;
    }
    munmap(text, 2 * PAGE);
    close(file), close(self);
    return wrong;
}

int main(void) {
    char *four = mmap(NULL, 4 * PAGE, BOTH, PLAIN, -1, 0);
    memset(four, 'x', 4 * PAGE);
    RESULT(madvise(four, PAGE, MADV_DONTNEED));
    VALUE(four[0]);
    VALUE(four[PAGE]);
    RESULT(madvise(four + 1, PAGE, MADV_DONTNEED));
    RESULT(madvise(four, PAGE, 4711));
    RESULT(madvise(four, 0, MADV_NORMAL));
    RESULT(madvise(four, PAGE, MADV_WIPEONFORK));
    RESULT(madvise(four, 4 * PAGE, MADV_FREE));
    unsigned char resident[4];
    memset(four, 'y', 2 * PAGE);
    munmap(four + 3 * PAGE, PAGE);
    RESULT(mincore(four, 3 * PAGE, resident));
    say("resident: %d %d", resident[0] & 1, resident[1] & 1);
    RESULT(mincore(four, 4 * PAGE, resident));
    RESULT(mincore(four + 1, PAGE, resident));
    RESULT(mincore(four, PAGE, (void *)8));
    RESULT(madvise(four, 4 * PAGE, MADV_NORMAL));
    pid_t child = fork();
    if (child == 0) {
        VALUE(four[0]);
        VALUE(four[PAGE]);
        _exit(0);
    }
    ended("child", child);

    say("locking");
    RESULT(mlock(four, PAGE));
    RESULT(munlock(four, PAGE));
    RESULT(mlock2(four, PAGE, MLOCK_ONFAULT));
    RESULT(mlock2(four, PAGE, 77));
    RESULT(mlock((void *)0x10000, PAGE));
    char *big = mmap(NULL, 1 << 20, BOTH, PLAIN, -1, 0);
    struct rlimit limit = {65536, 65536};
    RESULT(setrlimit(RLIMIT_MEMLOCK, &limit));
    RESULT(mlock(big, 1 << 20));
    RESULT(munlockall());
    RESULT(mlockall(0));

    say("memfd");
    int made = memfd_create("named", MFD_ALLOW_SEALING);
    RESULT(ftruncate(made, 3LL << 32));
    RESULT(write(made, "sealed", 6));
    RESULT(fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
    RESULT(write(made, "sealed", 6));
    RESULT(ftruncate(made, 1));
    RESULT(fcntl(made, F_GET_SEALS));
    RESULT(lseek(made, 0, SEEK_END));
    SUCCESS((int)(intptr_t)mmap(NULL, PAGE, BOTH, MAP_SHARED, made, 0));
    SUCCESS((int)(intptr_t)mmap(NULL, PAGE, BOTH, MAP_PRIVATE, made, 0));
    RESULT(memfd_create("x", 0x8000));
    RESULT(memfd_create((char *)8, 0));

    say("System V");
    int id = SUCCESS(shmget(IPC_PRIVATE, 3 * PAGE, IPC_CREAT | 0600));
    char *one = shmat(id, NULL, 0), *two = shmat(id, NULL, SHM_RDONLY);
    IS(one != (void *)-1 && two != (void *)-1 && one != two);
    strcpy(one, "shared");
    TEXT(two);
    struct shmid_ds what;
    RESULT(shmctl(id, IPC_STAT, &what));
    say("size %d, attached %d, mode %o", (int)what.shm_segsz, (int)what.shm_nattch,
        what.shm_perm.mode & 0777);
    IS(what.shm_cpid == getpid() && what.shm_ctime > 1000000000);
    SUCCESS((int)(intptr_t)shmat(id, two, 0));
    SUCCESS((int)(intptr_t)shmat(id, two + 1, 0));
    IS(shmat(id, two, SHM_REMAP) == two);
    IS(shmat(id, two + 100, SHM_RND | SHM_REMAP) == two);
    RESULT(shmctl(id, IPC_RMID, NULL));
    RESULT(shmctl(id, IPC_STAT, &what));
    VALUE(what.shm_nattch);
    RESULT(shmdt(one));
    RESULT(shmdt(one));
    RESULT(shmdt(two));
    RESULT(shmctl(id, IPC_STAT, &what));
    RESULT(shmget(4711, PAGE, 0));
    RESULT(shmget(IPC_PRIVATE, 0, IPC_CREAT | 0600));
    RESULT(shmat(1 << 30, NULL, 0) == (void *)-1);
    int large = SUCCESS(shmget(IPC_PRIVATE, 256 << 20, IPC_CREAT | 0600));
    IS(keeps_its_place(large));
    SUCCESS((int)(intptr_t)shmat(large, (void *)0xf8000000, 0));
    SUCCESS((int)(intptr_t)shmat(large, (void *)0xf8000000, SHM_REMAP));
    RESULT(shmctl(large, IPC_RMID, NULL));

    say("userfaultfd");
    RESULT(syscall(SYS_userfaultfd, 0x10000));
    RESULT(ioctl(memfd_create("x", 0), UFFDIO_API, NULL));

    say("text that is dropped");
    int wrong = 0;
    for (int seam = 1; seam < 8; seam++)
        for (int page = 0; page < 2; page++)
            wrong += call_dropped(seam, page, 0) + call_dropped(seam, page, 1);
    VALUE(wrong);
    return 0;
}

/*
 * shmat of a segment of huge pages. Where none are set aside, root lets the kernel find some meanwhile.
 */
#include "../transcript.h"
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/shm.h>

enum { HUGE = 2 << 20, HUGETLB = 04000, SHIFT = 26, FLAGS = IPC_CREAT | HUGETLB | 21 << SHIFT | 0600 };

static void limit(char before[16], const char *now) {
    int file = open("/proc/sys/vm/nr_overcommit_hugepages", O_RDWR);
    if (file >= 0 && before)
        read(file, before, 15);
    if (file >= 0)
        pwrite(file, now, strlen(now), 0);
    close(file);
}

static void attach(int segment) {
    char *places[3];
    for (int i = 0; i < 3; i++) {
        places[i] = shmat(segment, NULL, i == 1 ? SHM_RDONLY : 0);
        IS(places[i] != (char *)-1 && (uintptr_t)places[i] % HUGE == 0);
        if (places[i] == (char *)-1)
            return;
    }
    places[0][2 * HUGE - 1] = 'x';
    IS(places[1][2 * HUGE - 1] == 'x' && places[2][2 * HUGE - 1] == 'x');
    RESULT(shmdt(places[1]));
    IS(shmat(segment, places[1], 0) == places[1]);
    SUCCESS((int)(intptr_t)shmat(segment, places[0] + 4096, SHM_REMAP));
    SUCCESS((int)(intptr_t)shmat(segment, NULL, SHM_REMAP));
}

int main(void) {
    char before[16] = "0\n";
    limit(before, "16\n");
    int huge = shmget(IPC_PRIVATE, HUGE + 100, FLAGS), small = shmget(IPC_PRIVATE, 5000, IPC_CREAT | 0600);
    if (huge < 0) {
        say("not here");
    } else {
        struct shmid_ds status;
        attach(huge);
        shmctl(huge, IPC_STAT, &status);
        VALUE((int)status.shm_nattch);
        SUCCESS((int)(intptr_t)shmat(small, NULL, SHM_REMAP));
        IS(shmat(small, NULL, 0) != (char *)-1);
    }
    shmctl(huge, IPC_RMID, NULL);
    shmctl(small, IPC_RMID, NULL);
    limit(NULL, before);
    return 0;
}

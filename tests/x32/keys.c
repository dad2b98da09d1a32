/*
 * Keys, and the vectors that keyctl reads as those of x32.
 */
#include "transcript.h"
#include <linux/keyctl.h>
#include <sys/uio.h>

int main(void) {
    int key = syscall(SYS_add_key, "user", "oracle", "payload", 7, KEY_SPEC_PROCESS_KEYRING);
    print_ok("add_key", key);
    char text[20] = "";
    RESULT(syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text));
    TEXT(text);
    struct iovec parts[] = {{"in two ", 7}, {"parts", 5}};
    RESULT(syscall(SYS_keyctl, KEYCTL_UPDATE, key, "new", 3));
    int made = syscall(SYS_keyctl, KEYCTL_INSTANTIATE_IOV, key, parts, 2, 0);
    print_result("KEYCTL_INSTANTIATE_IOV", made);
    RESULT(syscall(SYS_keyctl, 4711, 0, 0, 0, 0));
    RESULT(syscall(SYS_keyctl, KEYCTL_REVOKE, key));
    RESULT(syscall(SYS_keyctl, KEYCTL_READ, key, text, sizeof text));
    RESULT(syscall(SYS_add_key, "nothing", "oracle", "payload", 7, KEY_SPEC_PROCESS_KEYRING));

    return 0;
}

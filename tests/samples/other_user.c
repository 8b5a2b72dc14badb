/* Becomes another user, as servers do, and runs a program as this user. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

__attribute__((noinline)) int change_user(void)
{
    return setgid(NOBODY) != 0 || setuid(NOBODY) != 0;
}

int main(int argc, char **argv)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        if (argc < 2 || change_user() != 0) {
            _exit(1);
        }
        execv(argv[1], argv + 1);
        _exit(1);
    }
    return waitpid(child, &status, 0) != child || status != 0;
}

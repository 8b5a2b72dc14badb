#include <sojourn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) int chg_one(int value)
{
    return value + 1;
}
static void serve(int from, const char *name)
{
    char what;
    while (read(from, &what, 1) == 1) {
        if (what == 'b') {
            sojourn_mark_begin("phase");
        } else if (what == 'e') {
            sojourn_mark_end("phase");
        }
        printf("%s %d\n", name, chg_one(1));
        fflush(stdout);
    }
}
int main(void)
{
    int to[2];
    char line[8];
    pipe(to);
    if (fork() == 0) {
        close(to[1]);
        serve(to[0], "child");
        return 0;
    }
    close(to[0]);
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (line[0] == 'p') {
            printf("parent %d\n", chg_one(1));
            fflush(stdout);
        } else {
            write(to[1], line, 1);
        }
    }
    close(to[1]);
    wait(NULL);
    return 0;
}

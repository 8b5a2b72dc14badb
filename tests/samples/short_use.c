/* A use of freed memory in a function of four bytes. Its patch needs the bytes of other functions.
 * A report once named overflow_name instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

struct session {
    char name[48];
    int uses;
};

NOINLINE struct session *open_session(const char *name)
{
    struct session *session = malloc(sizeof(*session));
    strcpy(session->name, name);
    session->uses = 1;
    return session;
}

NOINLINE void close_session(struct session *session)
{
    free(session);
}

NOINLINE int count_uses(struct session *session)
{
    return session->uses;
}

NOINLINE void overflow_name(char *name)
{
    memset(name, 'x', 80);
}

NOINLINE void handle(int round)
{
    struct session *session = open_session("abc");
    close_session(session);
    printf("%d\n", count_uses(session) + round);
}

NOINLINE void fill(void)
{
    char *name = malloc(100);
    overflow_name(name);
    free(name);
}

int main(void)
{
    for (int i = 0; i < 3; i++) {
        handle(i);
    }
    fill();
    return 0;
}

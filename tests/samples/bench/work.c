/* work ROUNDS: small functions fill, search and empty a table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define static __attribute__((noinline)) static
struct node {
    struct node *next;
    char name[40];
};
struct node *table[512];
static unsigned hash(const char *text)
{
    unsigned sum = 7;
    while (*text) {
        sum = sum * 31 + (unsigned char)*text++;
    }
    return sum;
}
static void insert(const char *name)
{
    struct node *made = malloc(sizeof(*made));
    snprintf(made->name, 40, "%s", name);
    unsigned at = hash(name) % 512;
    made->next = table[at];
    table[at] = made;
}
static int find(const char *name)
{
    int steps = 0;
    for (struct node *one = table[hash(name) % 512]; one; one = one->next) {
        steps++;
        if (strcmp(one->name, name) == 0) {
            break;
        }
    }
    return steps;
}
static void clear(void)
{
    for (int i = 0; i < 512; i++) {
        while (table[i]) {
            struct node *gone = table[i];
            table[i] = gone->next;
            free(gone);
        }
    }
}
int main(int argc, char **argv)
{
    long sum = 0;
    char name[40];
    for (int round = 0; round < atoi(argv[1]); round++) {
        for (int i = 0; i < 4000; i++) {
            snprintf(name, 40, "name%d", i);
            insert(name);
        }
        for (int i = 0; i < 4000; i++) {
            snprintf(name, 40, "name%d", i);
            sum += find(name);
        }
        clear();
    }
    printf("%ld\n", sum);
    return argc == 0;
}

/* Measures what creating and freeing an object costs, a retain or release, and replacing one of 20,000
 * objects at random: least ns of many rounds. Prints the KiB of private memory at the end, too. */
#import <Foundation/Foundation.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 60, OBJECTS = 100000, ALIVE = 20000 };

@interface Duck : NSObject {
    int count;
    NSString *name;
}
@end

@implementation Duck
@end

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

static double make_and_free(void)
{
    const double start = now_ns();
    for (int i = 0; i < OBJECTS; i++) {
        [[Duck new] release];
    }
    return (now_ns() - start) / OBJECTS;
}

static double retain_and_release(Duck *duck)
{
    const double start = now_ns();
    for (int i = 0; i < OBJECTS; i++) {
        [duck retain];
        [duck release];
    }
    return (now_ns() - start) / (2 * OBJECTS);
}

static double free_at_random(void)
{
    static Duck *ducks[ALIVE];
    static unsigned random = 1;
    for (int i = 0; i < ALIVE && ducks[ALIVE - 1] == nil; i++) {
        ducks[i] = [Duck new];
    }
    const double start = now_ns();
    for (int i = 0; i < OBJECTS; i++) {
        random = random * 1103515245 + 12345;
        Duck **place = &ducks[(random >> 8) % ALIVE];
        [*place release];
        *place = [Duck new];
    }
    return (now_ns() - start) / OBJECTS;
}

/* KiB that no other process has: anonymous and shared memory. */
static long own_memory(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0 || strncmp(line, "RssShmem:", 9) == 0) {
            kib += strtol(strchr(line, ':') + 1, NULL, 10);
        }
    }
    return kib;
}

int main(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    Duck *duck = [Duck new];
    double freed = 1e18;
    double retained = 1e18;
    double at_random = 1e18;
    for (int i = 0; i < ROUNDS; i++) {
        const double first = make_and_free();
        const double second = retain_and_release(duck);
        const double third = free_at_random();
        freed = first < freed ? first : freed;
        retained = second < retained ? second : retained;
        at_random = third < at_random ? third : at_random;
    }
    printf("%.1f %.1f %.1f %ld\n", freed, retained, at_random, own_memory());
    [pool drain];
    return 0;
}

/* objc_bench WHAT N [again]: sends N messages to an empty method (`empty`), to one of about 30 ns (`work`), or
 * does N rounds of Foundation work (`foundation`); prints the CPU nanoseconds of its thread. With `again` it waits for a line of input and does
 * the same once more; a switch library (tests/agent/runtimes/objc_switch.c), when preloaded, is on
 * for as many messages in between, whose time is printed first. */
#import <Foundation/Foundation.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

@interface BenchObject : NSObject
- (void)empty;
- (uint64_t)work:(uint64_t)seed;
@end

@implementation BenchObject
- (void)empty
{
    __asm__ volatile("");
}

- (uint64_t)work:(uint64_t)seed
{
    for (int i = 0; i < 30; i++) {
        seed = seed * 6364136223846793005u + 1;
    }
    return seed;
}
@end

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void foundation_round(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    NSMutableDictionary *dictionary = [NSMutableDictionary dictionary];
    NSMutableArray *array = [NSMutableArray array];
    for (int i = 0; i < 200; i++) {
        NSString *text = [NSString stringWithFormat:@"%d", i * 7919 % 1000];
        [array addObject:text];
        [dictionary setObject:[NSNumber numberWithInt:i] forKey:text];
    }
    [array sortUsingSelector:@selector(compare:)];
    for (NSString *text in array) {
        [[dictionary objectForKey:text] intValue];
    }
    [pool release];
}

static uint64_t sum = 1;

static uint64_t measure(BenchObject *object, const char *what, long count);

/* Every message has been met before it is measured. */
static uint64_t measure_warm(BenchObject *object, const char *what, long count)
{
    (void)measure(object, what, 1);
    return measure(object, what, count);
}

static uint64_t measure(BenchObject *object, const char *what, long count)
{
    const uint64_t start_ns = cpu_ns();
    for (long i = 0; i < count; i++) {
        if (what[0] == 'e') {
            [object empty];
        } else if (what[0] == 'w') {
            sum = [object work:sum];
        } else {
            foundation_round();
        }
    }
    return cpu_ns() - start_ns;
}

int main(int argc, char **argv)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    BenchObject *object = [BenchObject new];
    const char *what = argc > 1 ? argv[1] : "empty";
    const long count = argc > 2 ? atol(argv[2]) : 1000000;
    printf("%llu\n", (unsigned long long)measure_warm(object, what, count));
    if (argc > 3) {
        void (*turn)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "objc_switch");
        fflush(stdout);
        (void)getchar();
        if (turn != NULL) {
            turn(1);
            const uint64_t on_ns = measure_warm(object, what, count);
            turn(0);
            printf("%llu ", (unsigned long long)on_ns);
        }
        printf("%llu\n", (unsigned long long)measure_warm(object, what, count));
    }
    [pool release];
    return sum == 0;
}

/* What an object costs that is made and freed, and a retain or release of one: least ns of many
 * rounds. */
#import <Foundation/Foundation.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 60, OBJECTS = 100000 };

@interface Duck : NSObject
{
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

int main(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    Duck *duck = [Duck new];
    double freed = 1e18;
    double retained = 1e18;
    for (int i = 0; i < ROUNDS; i++) {
        const double first = make_and_free();
        const double second = retain_and_release(duck);
        freed = first < freed ? first : freed;
        retained = second < retained ? second : retained;
    }
    printf("%.1f %.1f\n", freed, retained);
    [pool drain];
    return 0;
}

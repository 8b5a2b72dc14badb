/* Instance variables of freed Objective-C objects are read and written without a message: what only
 * guarded memory can find. Then the object gets a message. With a word, only owners come and go. */
#import <Foundation/Foundation.h>
#include <stdio.h>

#define KEPT __attribute__((noinline))

static volatile int sink;

@interface Egg : NSObject {
  @public
    int warmth;
    long days;
}
- (int)warmth;
@end

@interface Shell : NSObject /* not named by the policy */
{
  @public
    int thickness;
}
@end

@implementation Egg
- (int)warmth
{
    return warmth;
}
@end

@implementation Shell
@end

KEPT static Egg *make_egg(void)
{
    Egg *egg = [[Egg alloc] init];
    egg->warmth = 38;
    return egg;
}

KEPT static void drop_egg(Egg *egg)
{
    [egg release];
    sink = 0;
}

KEPT static int read_warmth(const volatile Egg *egg)
{
    return egg->warmth + 1;
}

KEPT static void write_days(volatile Egg *egg)
{
    egg->days = 21;
}

KEPT static int ask_warmth(Egg *egg)
{
    return [egg warmth] + 2;
}

/* Owners come and go, for as long as a budget needs to be noticed. */
static void retain_and_release(void)
{
    Egg *egg = make_egg();
    for (long i = 0; i < 20000000; i++) {
        [egg retain];
        [egg release];
    }
    drop_egg(egg);
}

int main(int argc, char **argv)
{
    (void)argv;
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    if (argc > 1) {
        retain_and_release();
        return 0;
    }
    Egg *first = make_egg();
    Egg *second = make_egg();
    Egg *third = make_egg();
    Shell *shell = [[Shell alloc] init];
    printf("%d\n", ask_warmth(first));
    drop_egg(first);
    drop_egg(second);
    drop_egg(third);
    [shell release];
    printf("%d\n", read_warmth(first));
    write_days(second);
    printf("%d\n", ask_warmth(third));
    fflush(stdout);
    [pool release];
    return 0;
}

/* Reads and writes instance variables of freed Objective-C objects without a message. Only guarded
 * memory can find this. Then sends a message to the object. With an argument, does what the
 * argument says. */
#import <Foundation/Foundation.h>
#include <stdio.h>
#include <string.h>

#define KEPT __attribute__((noinline))

static volatile int sink;

@interface Egg : NSObject {
  @public
    int warmth;
    long days;
}
- (int)warmth;
@end

@interface Shell : NSObject /* the policy does not name this class */
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

enum {
    FEW_TIMES = 1000000,
    TIMES = 20000000, /* takes long enough that a budget must be noticed */
};

/* Retains and releases one object many times. */
static void retain_and_release(long times)
{
    Egg *egg = make_egg();
    for (long i = 0; i < times; i++) {
        [egg retain];
        [egg release];
    }
    drop_egg(egg);
}

@interface Phoenix : NSObject /* retains itself in dealloc */
@end

static Phoenix *risen;

@implementation Phoenix
- (void)dealloc
{
    risen = [self retain];
    [super dealloc];
}

- (int)sing
{
    return 3;
}
@end

KEPT static int ask_risen(void)
{
    return [risen sing] + 4;
}

enum { MANY = 100000 };

/* Frees so many objects that the queue overflows. Overwrites the word in front of some of them.
 * Then sends a message to the last. */
KEPT static int use_one_of_many(void)
{
    static Egg *eggs[MANY];
    for (int i = 0; i < MANY; i++) {
        eggs[i] = make_egg();
    }
    for (int i = 0; i < MANY; i++) {
        drop_egg(eggs[i]);
    }
    for (int i = MANY - 100; i < MANY; i++) {
        ((volatile long *)eggs[i])[-1] = -1L >> (i % 64);
    }
    return ask_warmth(eggs[MANY - 1]);
}

static int obey(const char *word)
{
    if (strcmp(word, "retain") == 0) {
        retain_and_release(TIMES);
    } else if (strcmp(word, "few") == 0) {
        retain_and_release(FEW_TIMES);
    } else if (strcmp(word, "many") == 0) {
        printf("%d\n", use_one_of_many());
    } else if (strcmp(word, "rise") == 0) {
        [[[Phoenix alloc] init] release];
        printf("%d\n", ask_risen());
    } else {
        return 2;
    }
    fflush(stdout);
    return 0;
}

/* "-": reads lines of the input and makes the mistakes once for each line. */
static void use_freed(void)
{
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
}

int main(int argc, char **argv)
{
    NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
    if (argc > 1 && strcmp(argv[1], "-") != 0) {
        return obey(argv[1]);
    }
    if (argc == 1) {
        use_freed();
    } else {
        puts("ready");
        fflush(stdout);
        while (getchar() == '\n') {
            use_freed();
        }
    }
    [pool release];
    return 0;
}

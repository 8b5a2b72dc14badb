/* Instance variables of freed Objective-C objects are read and written without a message: what only
 * guarded memory can find. Then the object gets a message. With a
 * word, what it says. */
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

enum {
    FEW_TIMES = 1000000,
    TIMES = 20000000, /* for as long as a budget needs to be noticed */
};

/* Owners come and go. */
static void retain_and_release(long times)
{
    Egg *egg = make_egg();
    for (long i = 0; i < times; i++) {
        [egg retain];
        [egg release];
    }
    drop_egg(egg);
}

@interface Phoenix : NSObject /* is kept alive by somebody while it dies */
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

/* So many objects die that the queue overflows; of some the program overwrites what lies in front
 * of them. The last of them gets a message. */
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

/* "-": at each line of the input, as often as there are lines. */
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

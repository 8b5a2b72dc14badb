/* objc_stay: obeys each line of its input and prints a line. `keep` keeps the code of a message as
 * the dispatcher returns it, and `call` calls that code. `in` sends nested messages and reads the
 * next lines there. `out` returns from them, and `throw` leaves them with an exception. */
#import <Foundation/Foundation.h>
#include <objc/message.h>
#include <stdio.h>
#include <string.h>

@interface StayBase : NSObject
- (long)twice:(long)number;
- (long)nested:(long)depth;
@end

@interface StayDerived : StayBase
@end

static void take_lines(id object);

static void tell(const char *what, long number)
{
    printf("%s %ld\n", what, number);
    fflush(stdout);
}

@implementation StayBase
- (long)twice:(long)number
{
    return number * 2;
}

- (long)nested:(long)depth
{
    if (depth == 0) {
        tell("in", 0);
        take_lines(self);
        return 1;
    }
    return [self nested:depth - 1] + 1;
}
@end

@implementation StayDerived
- (long)nested:(long)depth
{
    return [super nested:depth] + 100;
}
@end

static void take_line(id object, const char *line)
{
    static long (*kept)(id, SEL, long);
    if (strcmp(line, "keep") == 0) {
        kept = (long (*)(id, SEL, long))objc_msg_lookup(object, @selector(twice:));
        tell("kept", kept != NULL);
    } else if (strcmp(line, "call") == 0) {
        tell("called", kept(object, @selector(twice:), 21));
    } else if (strcmp(line, "in") == 0) {
        @try {
            tell("out", [object nested:3]);
        } @catch (NSException *exception) {
            tell([[exception name] cString], [[exception reason] intValue]);
        }
    } else if (strcmp(line, "throw") == 0) {
        [NSException raise:@"thrown" format:@"7"];
    }
}

static void take_lines(id object)
{
    char line[64];
    while (fgets(line, sizeof(line), stdin) != NULL && strcmp(line, "out\n") != 0) {
        line[strcspn(line, "\n")] = '\0';
        take_line(object, line);
    }
}

int main(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    tell("ready", 1);
    take_lines([StayDerived new]);
    [pool release];
    return 0;
}

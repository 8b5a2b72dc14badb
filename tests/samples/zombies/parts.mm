/* Prints how often and when each C++ instance variable is destroyed. */
#import <Foundation/Foundation.h>
#include <cstdio>

static int made, destroyed;

struct part {
    int value;
    part() : value(7) { made++; }
    ~part() { destroyed++; value = 0; }
};

@interface Holder : NSObject
{
    part first;
    part second;
}
- (int)sum;
@end

@implementation Holder
- (int)sum
{
    return first.value + second.value;
}
@end

@interface Heir : Holder
{
    part third;
}
@end

@implementation Heir
@end

int main()
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    for (int i = 0; i < 3; i++) {
        Holder *holder = i == 1 ? [Heir new] : [Holder new];
        const int sum = [holder sum];
        const int before = destroyed;
        [holder release];
        printf("%d: sum %d, %d destroyed at once\n", i, sum, destroyed - before);
    }
    for (int i = 0; i < 50000; i++) {
        [[Heir new] release];
    }
    [pool drain];
    printf("%d made, %d destroyed\n", made, destroyed);
    return made != destroyed;
}

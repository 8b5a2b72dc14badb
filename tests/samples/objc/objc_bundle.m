/* A bundle that is loaded later, with a class, and a category on a class of the program. */
#import "objc_kinds.h"
#include "../truth.h"

@interface SmpLater : SmpDerived
@end

@implementation SmpLater
- (long)recurse:(long)depth
{
    METHOD_ENTER(SmpLater);
    const long sum = [super recurse:depth];
    METHOD_LEAVE();
    return sum;
}
@end

@implementation SmpBase (Later)
- (NSString *)addedLater
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return @"later";
}
@end

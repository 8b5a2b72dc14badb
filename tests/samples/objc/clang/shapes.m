#include "shapes.h"

@implementation ClangShape
@synthesize sides;

+ (void *)itself
{
    return self;
}

+ (long)countOf:(long)number
{
    return number + 1;
}

- (long)area:(long)size
{
    return size * size;
}

- (Big)big:(double)first
{
    Big big = {{first}};
    return big;
}
@end

@implementation ClangShape (Drawing)
- (long)draw:(long)times
{
    long sum = 0;
    for (long i = 0; i < times; i++) {
        sum += [self area:i];
    }
    return sum;
}

+ (long)paletteOf:(long)number
{
    return [self countOf:number];
}
@end

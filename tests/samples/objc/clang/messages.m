/* clang_messages: sends a known number of each message. clang compiles them for libobjc2. */
#include "runtime.h"
#include "shapes.h"

#include <stdio.h>

@interface ClangSquare : ClangShape
@end

@implementation ClangSquare
- (long)area:(long)size
{
    return [super area:size] + 1;
}
@end

static long send_messages(id object, ClangShape *shape, ClangShape *square)
{
    long sum = 0;
    for (int i = 0; i < 10; i++) {
        sum += [shape area:3];
        sum += i < 5 ? [square area:2] : 0;
        sum += i < 8 ? [object area:1] : 0;
        sum += i < 3 ? [shape draw:4] : 0;
        sum += i < 7 ? [ClangShape paletteOf:1] : 0;
        sum += i < 6 ? (long)[shape big:1.5].reals[0] : 0;
        sum += i < 4 ? shape.sides : 0;
    }
    shape.sides = 3;
    square.sides = 4;
    return sum;
}

int main(void)
{
    struct sample_class *made = sample_subclass([ClangSquare itself], "ClangMade");
    ClangShape *shape = sample_object([ClangShape itself]);
    ClangShape *square = sample_object([ClangSquare itself]);
    printf("%ld\n", send_messages(sample_object(made), shape, square));
    return 0;
}

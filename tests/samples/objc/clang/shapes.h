/* A class that is defined in another module than the program. */
#ifndef SJ_TESTS_SAMPLES_OBJC_CLANG_SHAPES_H
#define SJ_TESTS_SAMPLES_OBJC_CLANG_SHAPES_H

typedef struct Big {
    double reals[8];
} Big;

__attribute__((objc_root_class))
@interface ClangShape {
    void *isa;
    int sides;
}
+ (void *)itself;
+ (long)countOf:(long)number;
- (long)area:(long)size;
- (Big)big:(double)first;
@property int sides;
@end

@interface ClangShape (Drawing)
- (long)draw:(long)times;
+ (long)paletteOf:(long)number;
@end

#endif

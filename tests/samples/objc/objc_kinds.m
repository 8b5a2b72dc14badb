#import "objc_kinds.h"
#include "../truth.h"
#include <objc/runtime.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WORKER_ROUNDS = 50 };

void objc_truth_enter(id self, SEL selector, const char *owner)
{
    char name[256];
    Class class = object_getClass(self);
    const char *receiver = class_getName(class);
    const int same = strcmp(receiver, owner) == 0;
    snprintf(name, sizeof(name), "%c[%s%s%s %s]", class_isMetaClass(class) ? '+' : '-', receiver,
             same ? "" : ":", same ? "" : owner, sel_getName(selector));
    truth_enter(strdup(name));
}

/* Functions that methods jump to. They are not methods, and they send their own messages. */
__attribute__((noinline)) static long sum_outside(SmpBase *object, long depth)
{
    const long sum = [object recurse:depth];
    return sum + [object recurse:1];
}

__attribute__((noinline)) static void throw_outside(SmpBase *object)
{
    [object throwAt:1];
    object->touched++;
}

@implementation SmpBase
- (double)ints:(int)a b:(int)b c:(int)c d:(int)d e:(int)e f:(int)f g:(int)g
         reals:(double)i j:(double)j k:(double)k l:(double)l m:(double)m n:(double)n o:(double)o
             p:(double)p q:(double)q r:(double)r
{
    METHOD_ENTER(SmpBase);
    const double sum = a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + i * 9 + j * 10 + k * 11 +
                       l * 12 + m * 13 + n * 14 + o * 15 + p * 16 + q * 17 + r * 18;
    METHOD_LEAVE();
    return sum;
}

- (Big)big:(Big)big times:(int)times
{
    METHOD_ENTER(SmpBase);
    if (times != 0) {
        big = [self big:big times:times - 1];
        big.reals[0] += 1;
        big.whole[5] += 2;
    }
    METHOD_LEAVE();
    return big;
}

- (Mixed)mixed:(long)whole
{
    METHOD_ENTER(SmpBase);
    const Mixed mixed = {whole, whole * 1.5};
    METHOD_LEAVE();
    return mixed;
}

- (Pair)pair
{
    METHOD_ENTER(SmpBase);
    const Pair pair = {1.25f, 2.5f};
    METHOD_LEAVE();
    return pair;
}

- (float)half:(float)value
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return value / 2;
}

- (long double)triple:(long double)value
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return value * 3.0L;
}

- (_Complex long double)complexNumber
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return 1.0L + 2.0iL;
}

- (_Complex double)conjugate:(_Complex double)value
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return conj(value);
}

- (int)sumOf:(int)count, ...
{
    METHOD_ENTER(SmpBase);
    va_list arguments;
    double sum = 0;
    va_start(arguments, count);
    for (int i = 0; i < count; i++) {
        sum += va_arg(arguments, double);
    }
    va_end(arguments);
    METHOD_LEAVE();
    return (int)sum;
}

- (Vector)add:(Vector)a to:(Vector)b
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return a + b;
}

- (long)recurse:(long)depth
{
    METHOD_ENTER(SmpBase);
    const long sum = depth != 0 ? depth + [self recurse:depth - 1] : 0;
    METHOD_LEAVE();
    return sum;
}

- (void)throwAt:(int)depth
{
    METHOD_ENTER(SmpBase);
    if (depth != 0) {
        [self throwAt:depth - 1];
        touched++;
    } else {
        [NSException raise:@"Boom" format:@"at %d", depth];
    }
    METHOD_LEAVE();
}

- (int)catcher
{
    METHOD_ENTER(SmpBase);
    const int depth = truth_depth();
    int length = -1;
    @try {
        [self throwAt:5];
    } @catch (NSException *exception) {
        truth_unwind(depth);
        length = (int)[[exception reason] length];
    }
    METHOD_LEAVE();
    return length;
}

- (int)finally
{
    METHOD_ENTER(SmpBase);
    const int depth = truth_depth();
    int sum = 0;
    @try {
        @try {
            [self throwAt:3];
        } @finally {
            truth_unwind(depth);
            sum += [[self class] answer];
        }
    } @catch (NSException *exception) {
        sum += 10;
    }
    METHOD_LEAVE();
    return sum;
}

- (void)jumpTo:(jmp_buf *)buffer
{
    METHOD_ENTER(SmpBase);
    longjmp(*buffer, 1);
}

- (id)tail:(id)object
{
    METHOD_ENTER(SmpBase);
    NSString *text = [object description];
    METHOD_LEAVE();
    return text;
}

- (long)tailed:(long)depth
{
    METHOD_ENTER(SmpBase);
#ifdef __OPTIMIZE__
    METHOD_LEAVE();
    return [self recurse:depth];
#else
    const long sum = [self recurse:depth];
    METHOD_LEAVE();
    return sum;
#endif
}

- (long)tailedOut:(long)depth
{
    METHOD_ENTER(SmpBase);
#ifdef __OPTIMIZE__
    METHOD_LEAVE();
    return sum_outside(self, depth);
#else
    const long sum = sum_outside(self, depth);
    METHOD_LEAVE();
    return sum;
#endif
}

- (void)tailedThrow
{
    METHOD_ENTER(SmpBase);
#ifdef __OPTIMIZE__
    METHOD_LEAVE();
    throw_outside(self);
#else
    throw_outside(self);
    METHOD_LEAVE();
#endif
}

- (NSString *)description
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return @"described";
}

+ (int)answer
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return 7;
}
@end

@implementation SmpBase (Category)
- (int)inCategory:(int)value
{
    METHOD_ENTER(SmpBase);
    METHOD_LEAVE();
    return value + 1;
}

+ (int)classInCategory
{
    METHOD_ENTER(SmpBase);
    const int value = [self answer];
    METHOD_LEAVE();
    return value;
}
@end

@implementation SmpDerived
- (long)recurse:(long)depth
{
    METHOD_ENTER(SmpDerived);
    const long sum = [super recurse:depth];
    METHOD_LEAVE();
    return sum;
}

- (Mixed)mixed:(long)whole
{
    METHOD_ENTER(SmpDerived);
    const Mixed mixed = [super mixed:whole + 1];
    METHOD_LEAVE();
    return mixed;
}

- (NSMethodSignature *)methodSignatureForSelector:(SEL)selector
{
    METHOD_ENTER(SmpDerived);
    NSMethodSignature *signature = sel_isEqual(selector, @selector(twice:))
                                       ? [NSMethodSignature signatureWithObjCTypes:"q@:q"]
                                       : [super methodSignatureForSelector:selector];
    METHOD_LEAVE();
    return signature;
}

- (void)forwardInvocation:(NSInvocation *)invocation
{
    METHOD_ENTER(SmpDerived);
    long value;
    [invocation getArgument:&value atIndex:2];
    value *= 2;
    [invocation setReturnValue:&value];
    METHOD_LEAVE();
}

- (void)worker:(id)argument
{
    truth_lane([argument intValue]);
    METHOD_ENTER(SmpDerived);
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    for (int i = 0; i < WORKER_ROUNDS; i++) {
        [self recurse:10];
        [self catcher];
    }
    [pool release];
    METHOD_LEAVE();
    __atomic_store_n(&touched, -1, __ATOMIC_RELEASE);
}

- (void)leaver:(id)argument
{
    truth_lane([argument intValue]);
    METHOD_ENTER(SmpDerived);
    [self recurse:3];
    truth_unwind(0);
    __atomic_store_n(&touched, -1, __ATOMIC_RELEASE);
    [NSThread exit];
    METHOD_LEAVE(); /* never reached, but prevents a tail call */
}
@end

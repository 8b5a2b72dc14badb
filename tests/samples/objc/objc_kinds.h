/* Classes of the Objective-C samples, with methods of every kind of argument and result. Each
 * method reports its calls to truth.c, as -[Receiver:Owner selector]. ":Owner" is omitted if both
 * classes are the same. */
#ifndef SJ_TESTS_SAMPLES_OBJC_KINDS_H
#define SJ_TESTS_SAMPLES_OBJC_KINDS_H

#include <complex.h>
#import <Foundation/Foundation.h>
#include <setjmp.h>

typedef struct Big {
    double reals[4];
    long whole[6];
} Big;
typedef struct Mixed {
    long whole;
    double real;
} Mixed;
typedef struct Pair {
    float x, y;
} Pair;
typedef long Vector __attribute__((vector_size(32)));

/* Notes the entry of a method that `owner` defines. */
void objc_truth_enter(id self, SEL selector, const char *owner);
#define METHOD_ENTER(owner) objc_truth_enter(self, _cmd, #owner)
#define METHOD_LEAVE() truth_leave()

@interface SmpBase : NSObject {
  @public
    int touched;
}
- (double)ints:(int)a
             b:(int)b
             c:(int)c
             d:(int)d
             e:(int)e
             f:(int)f
             g:(int)g
         reals:(double)i
             j:(double)j
             k:(double)k
             l:(double)l
             m:(double)m
             n:(double)n
             o:(double)o
             p:(double)p
             q:(double)q
             r:(double)r;
- (Big)big:(Big)big times:(int)times;
- (Mixed)mixed:(long)whole;
- (Pair)pair;
- (float)half:(float)value;
- (long double)triple:(long double)value;
- (_Complex long double)complexNumber;
- (_Complex double)conjugate:(_Complex double)value;
- (int)sumOf:(int)count, ...;
- (Vector)add:(Vector)a to:(Vector)b;
- (long)recurse:(long)depth;
- (void)throwAt:(int)depth;
- (int)catcher;
- (int)finally;
- (void)jumpTo:(jmp_buf *)buffer;
- (id)tail:(id)object;
- (long)tailed:(long)depth;    /* if optimized, ends with a jump to another method */
- (long)tailedOut:(long)depth; /* if optimized, ends with a jump to a function */
- (void)tailedThrow;           /* if optimized, ends with a jump to a function that throws */
+ (int)answer;
@end

@interface SmpDerived : SmpBase
- (long)twice:(long)value; /* has no method and is forwarded */
- (void)worker:(id)argument;
- (void)leaver:(id)argument;
@end

@interface SmpBase (Category)
- (int)inCategory:(int)value;
+ (int)classInCategory;
@end

#endif

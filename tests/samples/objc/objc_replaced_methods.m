/* objc_replaced_methods: gives classes new code while it runs, in every way that GCC's runtime has. Sends a
 * known number of messages before and after each. Needs no arguments and no Foundation. */
#include <objc/Object.h>
#include <objc/runtime.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

@interface PutBase : Object
- (long)first:(long)value;
- (long)second:(long)value;
- (long)third:(long)value;
+ (long)shared:(long)value;
@end

@interface PutBase (Added)
- (long)added:(long)value;
@end

/* The program adds these methods to the class later. */
@interface PutBase (Later)
- (long)made:(long)value;
- (long)other:(long)value;
- (long)same:(long)value;
@end

@implementation PutBase
- (long)first:(long)value
{
    return value + 1;
}
- (long)second:(long)value
{
    return value * 2;
}
- (long)third:(long)value
{
    return value - 3;
}
+ (long)shared:(long)value
{
    return value ^ 4;
}
@end

@implementation PutBase (Added)
- (long)added:(long)value
{
    return value | 8;
}
@end

@interface PutDerived : PutBase
@end

@implementation PutDerived
@end

/* These functions are only called as methods. */
static long made(id self, SEL selector, long value)
{
    return value + (self != nil) + (selector != NULL);
}

static long other_code(id self, SEL selector, long value)
{
    return value - (self != nil) - (selector != NULL);
}

static long replaced(id self, SEL selector, long value)
{
    return value * 3 + (self != nil) + (selector != NULL);
}

static long set_code(id self, SEL selector, long value)
{
    return value * 5 + (self != nil) + (selector != NULL);
}

static long shared_code(id self, SEL selector, long value)
{
    return value * 7 + (self != nil) + (selector != NULL);
}

static long sum;

#define SEND(count, message)                                                                       \
    for (int i_ = 0; i_ < (count); i_++) {                                                         \
        sum += message;                                                                            \
    }

static void add_methods(PutBase *object, PutBase *derived)
{
    const char *types = "q24@0:8q16";
    class_addMethod(objc_getClass("PutBase"), @selector(made:), (IMP)made, types);
    /* the runtime refuses: the class has the method */
    class_addMethod(objc_getClass("PutBase"), @selector(made:), (IMP)other_code, types);
    SEND(3, [object made:1]);
    SEND(2, [derived made:1]);
    /* Two methods share code. The code keeps its name until one of the methods gets other code. */
    class_addMethod(objc_getClass("PutBase"), @selector(other:), (IMP)shared_code, types);
    class_addMethod(objc_getClass("PutDerived"), @selector(same:), (IMP)shared_code, types);
    SEND(5, [object other:1]);
    SEND(6, [derived same:1]);
    class_replaceMethod(objc_getClass("PutBase"), @selector(other:), (IMP)other_code, types);
    SEND(4, [object other:1]);
    SEND(8, [derived same:1]);
}

static void swizzle(PutBase *object)
{
    SEND(10, [object first:1]);
    SEND(20, [object added:1]);
    Method first = class_getInstanceMethod(objc_getClass("PutBase"), @selector(first:));
    Method added = class_getInstanceMethod(objc_getClass("PutBase"), @selector(added:));
    method_exchangeImplementations(first, added);
    SEND(3, [object first:1]); /* runs the code of the category */
    SEND(4, [object added:1]);
    method_exchangeImplementations(first, added);
    SEND(5, [object first:1]);
    SEND(6, [object added:1]);
    class_replaceMethod(objc_getClass("PutBase"), @selector(second:), (IMP)replaced, "q24@0:8q16");
    SEND(7, [object second:1]);
    Method shared = class_getClassMethod(objc_getClass("PutBase"), @selector(shared:));
    SEND(9, [PutBase shared:1]);
    method_setImplementation(shared, (IMP)set_code);
    SEND(11, [PutBase shared:1]);
}

int main(void)
{
    PutBase *object = class_createInstance(objc_getClass("PutBase"), 0);
    PutBase *derived = class_createInstance(objc_getClass("PutDerived"), 0);
    add_methods(object, derived);
    swizzle(object);
    SEND(1, [derived third:1]);
    const pid_t child = fork(); /* the child inherits the names of its parent's code */
    if (child == 0) {
        SEND(100, [object second:1]);
        SEND(100, [PutBase shared:1]);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("%ld\n", sum);
    return 0;
}

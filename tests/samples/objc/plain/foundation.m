#import <Foundation/Foundation.h>
#include <execinfo.h>
#include <objc/message.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NSString *const NSRangeException = @"NSRangeException";

static NSString *make_string(NSString *format, va_list arguments)
{
    NSString *string = [NSString alloc];
    const int bytes = vasprintf(&string->text, format->text, arguments);
    string->bytes = bytes > 0 ? (unsigned int)bytes : 0;
    return string;
}

/* The runtime asks for this code if an object has no method for a message. */
static long forward_long(id self, SEL selector, long argument)
{
    if ([self methodSignatureForSelector:selector] == nil) {
        [NSException raise:@"NSInvalidArgumentException" format:@"does not recognize"];
    }
    NSInvocation *invocation = [NSInvocation new];
    invocation->argument = argument;
    [self forwardInvocation:invocation];
    return invocation->result;
}

static IMP find_forward(id receiver, SEL selector)
{
    (void)receiver;
    (void)selector;
    return (IMP)forward_long;
}

__attribute__((constructor)) static void set_forward(void)
{
    __objc_msg_forward2 = find_forward;
}

@implementation NSObject
+ (id)alloc
{
    return class_createInstance(self, 0);
}
+ (id)new
{
    return [[self alloc] init];
}
- (id)init
{
    return self;
}
- (id)retain
{
    return self;
}
- (id)autorelease
{
    return self;
}
- (void)release
{
}
- (Class)class
{
    return object_getClass(self);
}
- (BOOL)isEqual:(id)other
{
    return self == other;
}
- (NSString *)description
{
    return @"an object";
}
- (id)performSelector:(SEL)selector
{
    IMP code = objc_msg_lookup(self, selector);
    return ((id(*)(id, SEL))code)(self, selector);
}
- (id)performSelector:(SEL)selector withObject:(id)object
{
    IMP code = objc_msg_lookup(self, selector);
    return ((id(*)(id, SEL, id))code)(self, selector, object);
}
- (IMP)methodForSelector:(SEL)selector
{
    return objc_msg_lookup(self, selector);
}
- (NSMethodSignature *)methodSignatureForSelector:(SEL)selector
{
    (void)selector;
    return nil;
}
- (void)forwardInvocation:(NSInvocation *)invocation
{
    (void)invocation;
}
@end

@implementation NSString
+ (id)stringWithFormat:(NSString *)format, ...
{
    va_list arguments;
    va_start(arguments, format);
    NSString *string = make_string(format, arguments);
    va_end(arguments);
    return string;
}
- (size_t)length
{
    return bytes;
}
- (long)compare:(NSString *)other
{
    return strcmp(text, other->text);
}
- (BOOL)isEqual:(id)other
{
    return strcmp(text, ((NSString *)other)->text) == 0;
}
@end

@implementation NSConstantString
@end

@implementation NSException
+ (void)raise:(NSString *)kind format:(NSString *)format, ...
{
    void *frames[64];
    NSException *exception = [self new];
    va_list arguments;
    va_start(arguments, format);
    exception->name = kind;
    exception->reason = make_string(format, arguments);
    va_end(arguments);
    exception->addresses = [NSMutableArray array];
    for (int i = backtrace(frames, 64); i > 0; i--) {
        [exception->addresses addObject:exception];
    }
    @throw exception;
}
- (NSString *)name
{
    return name;
}
- (NSString *)reason
{
    return reason;
}
- (NSMutableArray *)callStackReturnAddresses
{
    return addresses;
}
@end

@implementation NSNumber
+ (id)numberWithInt:(int)number
{
    NSNumber *made = [self new];
    made->value = number;
    return made;
}
- (int)intValue
{
    return value;
}
@end

@implementation NSMutableArray
+ (id)array
{
    return [self new];
}
- (void)addObject:(id)object
{
    items = realloc(items, (count + 1) * sizeof(*items));
    items[count++] = object;
}
- (size_t)count
{
    return count;
}
- (id)objectAtIndex:(size_t)index
{
    if (index >= count) {
        [NSException raise:NSRangeException format:@"index %zu", index];
    }
    return items[index];
}
- (void)sortUsingSelector:(SEL)selector
{
    for (size_t i = 1; i < count; i++) {
        for (size_t at = i; at > 0; at--) {
            id left = items[at - 1];
            long (*compare)(id, SEL, id) = (long (*)(id, SEL, id))objc_msg_lookup(left, selector);
            if (compare(left, selector, items[at]) <= 0) {
                break;
            }
            items[at - 1] = items[at];
            items[at] = left;
        }
    }
}
@end

@implementation NSMethodSignature
+ (id)signatureWithObjCTypes:(const char *)types
{
    (void)types;
    return [self new];
}
@end

@implementation NSInvocation
- (void)getArgument:(void *)value atIndex:(int)index
{
    (void)index;
    memcpy(value, &argument, sizeof(argument));
}
- (void)setReturnValue:(void *)value
{
    memcpy(&result, value, sizeof(result));
}
@end

@implementation NSAutoreleasePool
@end

typedef struct thread_start {
    SEL selector;
    id target;
    id object;
} thread_start;

static void *run_thread(void *argument)
{
    const thread_start *start = argument;
    [start->target performSelector:start->selector withObject:start->object];
    return NULL;
}

@implementation NSThread
+ (void)detachNewThreadSelector:(SEL)selector toTarget:(id)target withObject:(id)object
{
    thread_start *start = malloc(sizeof(*start));
    pthread_t thread;
    *start = (thread_start){selector, target, object};
    pthread_create(&thread, NULL, run_thread, start);
    pthread_detach(thread);
}
+ (void)exit
{
    pthread_exit(NULL);
}
@end

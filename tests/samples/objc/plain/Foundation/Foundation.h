/* The part of Foundation that the Objective-C samples use, based only on GCC's runtime. It is for
 * machines for which Debian does not cross-build GNUstep. Nothing is ever freed. */
#ifndef SJ_TESTS_SAMPLES_OBJC_PLAIN_FOUNDATION_H
#define SJ_TESTS_SAMPLES_OBJC_PLAIN_FOUNDATION_H

#define PLAIN_FOUNDATION 1

#include <objc/objc.h>
#include <objc/runtime.h>
#include <stddef.h>

@class NSString, NSMutableArray, NSMethodSignature, NSInvocation;

@interface NSObject {
    Class isa;
}
+ (id)alloc;
+ (id)new;
- (id)init;
- (id)retain;
- (id)autorelease;
- (void)release;
- (Class)class;
- (BOOL)isEqual:(id)other;
- (NSString *)description;
- (id)performSelector:(SEL)selector;
- (id)performSelector:(SEL)selector withObject:(id)object;
- (IMP)methodForSelector:(SEL)selector;
- (NSMethodSignature *)methodSignatureForSelector:(SEL)selector;
- (void)forwardInvocation:(NSInvocation *)invocation;
@end

@interface NSString : NSObject {
  @public
    char *text;
    unsigned int bytes;
}
+ (id)stringWithFormat:(NSString *)format, ...;
- (size_t)length;
- (long)compare:(NSString *)other;
@end

/* The compiler makes an object of this class for each @"" literal. */
@interface NSConstantString : NSString
@end

@interface NSException : NSObject {
    NSString *name;
    NSString *reason;
    NSMutableArray *addresses;
}
+ (void)raise:(NSString *)name format:(NSString *)format, ...;
- (NSString *)name;
- (NSString *)reason;
- (NSMutableArray *)callStackReturnAddresses;
@end

extern NSString *const NSRangeException;

@interface NSNumber : NSObject {
    int value;
}
+ (id)numberWithInt:(int)value;
- (int)intValue;
@end

@interface NSMutableArray : NSObject {
    id *items;
    size_t count;
}
+ (id)array;
- (void)addObject:(id)object;
- (size_t)count;
- (id)objectAtIndex:(size_t)index;
- (void)sortUsingSelector:(SEL)selector;
@end

@interface NSMethodSignature : NSObject
+ (id)signatureWithObjCTypes:(const char *)types;
@end

/* Invokes a message with one argument of 64 bits and a result of 64 bits. */
@interface NSInvocation : NSObject {
  @public
    long argument;
    long result;
}
- (void)getArgument:(void *)value atIndex:(int)index;
- (void)setReturnValue:(void *)value;
@end

@interface NSAutoreleasePool : NSObject
@end

@interface NSThread : NSObject
+ (void)detachNewThreadSelector:(SEL)selector toTarget:(id)target withObject:(id)object;
+ (void)exit;
@end

#endif

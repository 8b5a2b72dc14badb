/* Classes at every stage of their life: without a dispatch table, made at run time, put into objects
 * that exist, being initialised. Each number of standard input is a stage with classes of its own; it
 * is printed when it is done, and in front of it what went wrong. */
#import <Foundation/Foundation.h>
#include <objc/runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { MODEL = 1, OTHER, STARTED };

@interface Watcher : NSObject
{
@public
    int changes;
}
@end

@implementation Watcher
- (void)observeValueForKeyPath:(NSString *)path
                      ofObject:(id)object
                        change:(NSDictionary *)change
                       context:(void *)context
{
    changes++;
}
@end

#define CLASSES(stage)                                                                             \
    @interface Model##stage : NSObject                                                             \
    { int count; }                                                                                 \
    -(int)value;                                                                                   \
    -(void)setCount : (int)value;                                                                  \
    -(int)count;                                                                                   \
    @end                                                                                           \
    @implementation Model##stage                                                                   \
    -(int)value { return MODEL; }                                                                  \
    -(void)setCount : (int)value { count = value; }                                                \
    -(int)count { return count; }                                                                  \
    @end                                                                                           \
    @interface Other##stage : NSObject                                                             \
    -(int)value;                                                                                   \
    @end                                                                                           \
    @implementation Other##stage                                                                   \
    -(int)value { return OTHER; }                                                                  \
    @end                                                                                           \
    @interface Plain##stage : NSObject                                                             \
    @end                                                                                           \
    @implementation Plain##stage                                                                   \
    @end                                                                                           \
    @interface Started##stage : NSObject                                                           \
    -(int)value;                                                                                   \
    @end                                                                                           \
    @implementation Started##stage                                                                 \
    +(void)initialize { started += [[[self new] autorelease] value]; }                             \
    -(int)value { return STARTED; }                                                                \
    @end

static int started;
CLASSES(0)
CLASSES(1)
CLASSES(2)
CLASSES(3)

static void expect(int is_right, const char *what)
{
    if (!is_right) {
        printf("wrong: %s\n", what);
    }
}

static Class class_of(const char *name, int stage)
{
    char text[32];
    snprintf(text, sizeof(text), "%s%d", name, stage);
    return objc_getClass(text);
}

/* Nothing was sent to these classes before their first object is asked. */
static void without_tables(int stage)
{
    id other = class_createInstance(class_of("Other", stage), 0);
    id plain = class_createInstance(class_of("Plain", stage), 0);
    int is_refused = 0;
    expect([other value] == OTHER, "a method of the object's own class");
    @try {
        [plain value];
    } @catch (NSException *exception) {
        is_refused = [[exception name] isEqual:NSInvalidArgumentException];
    }
    expect(is_refused, "a message that is not understood");
    [other release];
    [plain release];
}

static void made_at_run_time(int stage)
{
    char name[32];
    snprintf(name, sizeof(name), "Made%d", stage);
    Class made = objc_allocateClassPair(class_of("Other", stage), name, 0);
    objc_registerClassPair(made);
    id object = [class_of("Plain", stage) new];
    object_setClass(object, made);
    expect([object value] == OTHER, "a class that was put into an object");
    [object release];
}

static void observed(int stage)
{
    Watcher *watcher = [Watcher new];
    Model0 *model = [class_of("Model", stage) new];
    [model addObserver:watcher forKeyPath:@"count" options:0 context:NULL];
    [model setCount:3];
    expect(watcher->changes == 1 && [model count] == 3 && [model value] == MODEL, "an observed object");
    [model removeObserver:watcher forKeyPath:@"count"];
    [model release];
    [watcher release];
}

static void initialised(int stage)
{
    started = 0;
    id object = [class_of("Started", stage) new];
    expect(started == STARTED && [object value] == STARTED, "a class that is initialised");
    [object release];
}

static void run(int stage)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    without_tables(stage);
    made_at_run_time(stage);
    observed(stage);
    initialised(stage);
    [pool drain];
}

int main(void)
{
    char line[64];
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int stage = 0; stage < 4; stage++) {
        [class_of("Model", stage) class]; /* initialised, and still without a table */
    }
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        run(atoi(line));
        printf("%s", line);
    }
    [pool drain];
    return 0;
}

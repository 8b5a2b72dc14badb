/* Uses classes at every stage of their life. They have no dispatch table yet, are made at run time,
 * are given to existing objects, or are being initialised. Others have methods that were swizzled
 * at this or an earlier stage. Each number on standard input is a stage with its own classes. The
 * program prints the number when the stage is done, after what went wrong. */
#import <Foundation/Foundation.h>
#include <objc/runtime.h>
#include <stdio.h>
#include <stdlib.h>

enum { MODEL = 1, OTHER, STARTED, ONE, TWO, CLASS_METHOD, SUPER_ADDS = 10, STAGES = 4 };

typedef struct Large {
    long words[8];
} Large;

@interface NSObject (Swizzled)
- (int)one;
- (int)two;
- (int)amount;
- (Large)largeOne;
- (Large)largeTwo;
@end

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
    @end                                                                                           \
    @interface Pair##stage : NSObject                                                              \
    @end                                                                                           \
    @implementation Pair##stage                                                                    \
    -(int)one { return ONE; }                                                                      \
    -(int)two { return TWO; }                                                                      \
    +(int)two { return CLASS_METHOD; }                                                             \
    -(Large)largeOne { return (Large){{ONE, 0, 0, 0, 0, 0, 0, ONE}}; }                             \
    -(Large)largeTwo { return (Large){{TWO, 0, 0, 0, 0, 0, 0, TWO}}; }                             \
    @end                                                                                           \
    @interface Child##stage : Pair##stage                                                          \
    @end                                                                                           \
    @implementation Child##stage                                                                   \
    -(int)one { return SUPER_ADDS + [super one]; }                                                 \
    @end

static int started, last_stage;
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

/* These classes have not received a message before their first object does. */
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
    object_dispose(other); /* these objects have no retain count */
    object_dispose(plain);
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

/* Objects and code that the program keeps from the stages whose methods were swizzled. */
static id pairs[STAGES], children[STAGES];
static IMP kept_one[STAGES];

static void exchange(Class class, const char *first, const char *second)
{
    method_exchangeImplementations(class_getInstanceMethod(class, sel_registerName(first)),
                                   class_getInstanceMethod(class, sel_registerName(second)));
}

/* Exchanges methods: with each other, with itself, with results in memory, and of a metaclass with
 * a class. Replaces code by the code that it was before, and keeps code that was asked for
 * earlier. */
static void swizzle(int stage)
{
    Class pair = class_of("Pair", stage);
    pairs[stage] = [pair new];
    children[stage] = [class_of("Child", stage) new];
    kept_one[stage] = class_getMethodImplementation(pair, @selector(one));
    expect([pairs[stage] one] == ONE && [children[stage] one] == SUPER_ADDS + ONE, "before it is swizzled");
    exchange(pair, "one", "two");
    exchange(pair, "largeOne", "largeTwo");
    exchange(pair, "two", "two");
    IMP before = class_replaceMethod(pair, @selector(amount), kept_one[stage], "i@:");
    expect(before == NULL, "a method that the class did not have");
    IMP now = class_getMethodImplementation(pair, @selector(one));
    before = class_replaceMethod(pair, @selector(amount), now, "i@:");
    expect(before == kept_one[stage], "the code that is replaced");
    method_exchangeImplementations(class_getClassMethod(pair, @selector(two)),
                                   class_getInstanceMethod(class_of("Child", stage), @selector(one)));
}

static void expect_swizzled(int stage)
{
    id pair = pairs[stage];
    Class class = class_of("Pair", stage);
    expect([pair one] == TWO && [pair two] == ONE, "exchanged methods");
    expect([pair largeOne].words[7] == TWO && [pair largeTwo].words[7] == ONE, "results in memory");
    expect([pair amount] == TWO, "replaced code");
    expect(((int (*)(id, SEL))kept_one[stage])(pair, @selector(one)) == ONE, "code that was kept");
    expect([children[stage] one] == CLASS_METHOD && [children[stage] two] == ONE, "a subclass");
    expect(class_getMethodImplementation(class, @selector(two)) == kept_one[stage] ||
               stage != last_stage, "the same code, as long as nothing came or went");
}

/* A class gets code of another class before it is registered. It is used and then disposed of. */
static void borrowed(int stage)
{
    char name[32];
    snprintf(name, sizeof(name), "Borrowed%d", stage);
    Class made = objc_allocateClassPair([NSObject class], name, 0);
    Class pair = class_of("Pair", stage);
    IMP code = class_getMethodImplementation(pair, @selector(two));
    expect(class_addMethod(made, @selector(value), code, "i@:"), "code of another class");
    objc_registerClassPair(made);
    id object = class_createInstance(made, 0);
    expect([object value] == ONE, "borrowed code");
    object_dispose(object);
    objc_disposeClassPair(made);
}

static void run(int stage)
{
    last_stage = stage;
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    without_tables(stage);
    made_at_run_time(stage);
    observed(stage);
    initialised(stage);
    swizzle(stage);
    borrowed(stage);
    for (int past = 0; past <= stage; past++) {
        expect_swizzled(past);
    }
    [pool drain];
}

int main(void)
{
    char line[64];
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int stage = 0; stage < STAGES; stage++) {
        [class_of("Model", stage) class]; /* initialises the class, which still has no table */
    }
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        run(atoi(line));
        printf("%s", line);
    }
    [pool drain];
    return 0;
}

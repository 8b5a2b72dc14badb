/* Sends messages to freed Objective-C objects, in one way for each number. The zombie monitor must
 * find each. Each way is in a function with its own name. Without a number, sends none: the output
 * must be the same with and without the monitor. -1: checks that the methods are the program's own.
 * "-": reads numbers from standard input and prints each when it is done. */
#define _GNU_SOURCE
#import <Foundation/Foundation.h>
#include <dlfcn.h>
#include <objc/message.h>
#include <objc/runtime.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline))

typedef struct large {
    long words[9];
} large;

@interface Duck : NSObject
{
    int weight;
    double speed;
    NSString *name;
}
- (void)quack;
- (int)weight;
- (void)setWeight:(int)value;
- (double)speed;
- (float)slowness;
- (long double)depth;
- (large)measures;
- (void)heard:(NSNotification *)note;
- (void)tick:(NSTimer *)timer;
- (NSComparisonResult)compareWeight:(Duck *)other;
@end

@interface Duckling : Duck
@end

@interface Swan : Duck /* uses itself after it has been freed */
@end

@interface Nest : NSObject
{
    Duck *delegate; /* not retained */
}
- (void)setDelegate:(Duck *)value;
- (void)wake;
@end

@interface Owner : NSObject /* releases its object once too often */
{
    Duck *duck;
}
@end

@interface Proxy : NSProxy
{
    Duck *target; /* not retained */
}
+ (Proxy *)proxyFor:(Duck *)duck;
@end

@interface MyString : NSString /* its superclass is in Foundation */
{
    unichar letter;
}
@end

__attribute__((objc_root_class)) @interface Plain
{
    Class isa;
    long value;
}
+ (Plain *)make;
- (long)value;
- (void)destroy;
@end

static volatile long sink;
static char text[256];

@implementation Duck
- (void)quack
{
    sink++;
}
- (int)weight
{
    return weight;
}
- (void)setWeight:(int)value
{
    weight = value;
}
- (double)speed
{
    return 2.5;
}
- (float)slowness
{
    return 0.5F;
}
- (long double)depth
{
    return 1.25L;
}
- (large)measures
{
    large all = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
    return all;
}
- (void)heard:(NSNotification *)note
{
    sink++;
}
- (void)tick:(NSTimer *)timer
{
    sink++;
}
- (NSComparisonResult)compareWeight:(Duck *)other
{
    return NSOrderedSame;
}
@end

@implementation Duckling
@end

@implementation Swan
- (void)dealloc
{
    [super dealloc];
    [self quack];
}
@end

@implementation Nest
- (void)setDelegate:(Duck *)value
{
    delegate = value;
}
- (void)wake
{
    [delegate quack];
    sink++;
}
@end

@implementation Owner
- (id)init
{
    duck = [Duck new];
    return self;
}
- (void)dealloc
{
    [duck release];
    [duck release];
    [super dealloc];
}
@end

@implementation Proxy
+ (Proxy *)proxyFor:(Duck *)duck
{
    Proxy *made = [self alloc];
    made->target = duck;
    return made;
}
- (NSMethodSignature *)methodSignatureForSelector:(SEL)selector
{
    return [Duck instanceMethodSignatureForSelector:selector];
}
- (void)forwardInvocation:(NSInvocation *)invocation
{
    [invocation invokeWithTarget:target];
    sink++;
}
@end

@implementation MyString
- (NSUInteger)length
{
    return 1;
}
- (unichar)characterAtIndex:(NSUInteger)index
{
    return 'a';
}
@end

@implementation Plain
+ (Plain *)make
{
    return (Plain *)class_createInstance(self, 0);
}
- (long)value
{
    return value;
}
- (void)destroy
{
    object_dispose((id)self);
    sink = 0;
}
@end

KEPT static Duck *make_duck(void)
{
    Duck *duck = [Duck new];
    [duck setWeight:7];
    return duck;
}

KEPT static void drop(id object)
{
    [object release];
    sink = 0;
}

KEPT static Duck *dead_duck(void)
{
    Duck *duck = make_duck();
    drop(duck);
    return duck;
}

KEPT static void expect(bool is_so)
{
    if (!is_so) {
        printf("a result is not zero\n");
    }
}

KEPT static void send_message(void)
{
    [dead_duck() quack];
    sink = 1;
}

KEPT static void release_again(void)
{
    [dead_duck() release];
    sink = 2;
}

KEPT static void drain_pool(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    Duck *duck = make_duck();
    [duck autorelease];
    drop(duck);
    [pool drain];
    sink = 3;
}

KEPT static void retain_again(void)
{
    Duck *duck = dead_duck();
    expect([duck retain] == duck);
}

KEPT static void perform(void)
{
    [dead_duck() performSelector:@selector(quack)];
    sink = 5;
}

KEPT static void turn_loop(void)
{
    [[NSRunLoop currentRunLoop] runUntilDate:[NSDate dateWithTimeIntervalSinceNow:0.02]];
    sink = 6;
}

KEPT static void perform_later(void)
{
    Duck *duck = make_duck();
    [duck performSelector:@selector(quack) withObject:nil afterDelay:0];
    drop(duck);
    drop(duck);
    turn_loop();
}

KEPT static void invoke(void)
{
    Duck *duck = make_duck();
    NSInvocation *invocation = [NSInvocation
        invocationWithMethodSignature:[duck methodSignatureForSelector:@selector(weight)]];
    [invocation setTarget:duck];
    [invocation setSelector:@selector(weight)];
    drop(duck);
    [invocation invoke];
    int weight = 1;
    [invocation getReturnValue:&weight];
    expect(weight == 0);
}

KEPT static void notify(void)
{
    NSNotificationCenter *center = [NSNotificationCenter defaultCenter];
    Duck *duck = make_duck();
    [center addObserver:duck selector:@selector(heard:) name:@"Noise" object:nil];
    drop(duck);
    [center postNotificationName:@"Noise" object:nil];
    [center removeObserver:duck];
}

KEPT static void fire_timer(void)
{
    Duck *duck = make_duck();
    NSTimer *timer = [NSTimer scheduledTimerWithTimeInterval:0.001
                                                      target:duck
                                                    selector:@selector(tick:)
                                                    userInfo:nil
                                                     repeats:NO];
    [timer retain];
    drop(duck);
    drop(duck);
    [timer fire];
    [timer invalidate];
    sink = 9;
}

KEPT static NSMutableArray *array_with_dead(void)
{
    Duck *duck = make_duck();
    NSMutableArray *array = [[NSMutableArray alloc] initWithObjects:duck, nil];
    drop(duck);
    drop(duck);
    return array;
}

KEPT static void tell_all(void)
{
    [array_with_dead() makeObjectsPerformSelector:@selector(quack)];
    sink = 10;
}

KEPT static void describe_array(void)
{
    [array_with_dead() description];
    sink = 11;
}

KEPT static void find_in_array(void)
{
    NSMutableArray *array = array_with_dead();
    [array indexOfObject:@"none"];
    sink = 12;
}

KEPT static void empty_array(void)
{
    [array_with_dead() removeAllObjects];
    sink = 13;
}

KEPT static void find_in_dictionary(void)
{
    Duck *duck = make_duck();
    NSMutableDictionary *all = [NSMutableDictionary new];
    [all setObject:duck forKey:@"duck"];
    drop(duck);
    drop(duck);
    [[all objectForKey:@"duck"] quack];
    sink = 14;
}

KEPT static void find_in_set(void)
{
    Duck *duck = make_duck();
    NSMutableSet *all = [NSMutableSet new];
    [all addObject:duck];
    drop(duck);
    drop(duck);
    [[all anyObject] quack];
    sink = 15;
}

KEPT static void format_text(void)
{
    NSString *made = [NSString stringWithFormat:@"<%@>", dead_duck()];
    snprintf(text, sizeof(text), "%s", [made UTF8String]);
}

KEPT static void get_large(void)
{
    large all = {{1, 1, 1, 1, 1, 1, 1, 1, 1}};
    all = [dead_duck() measures];
    for (int i = 0; i < 9; i++) {
        expect(all.words[i] == 0);
    }
}

KEPT static void get_long_double(void)
{
    for (int i = 0; i < 20; i++) { /* no message may leave a value on the x87 register stack */
        long double depth = [dead_duck() depth];
        expect(depth == 0);
    }
}

KEPT static void get_double(void)
{
    double speed = [dead_duck() speed];
    expect(speed == 0);
}

KEPT static void get_float(void)
{
    float slowness = [dead_duck() slowness];
    expect(slowness == 0);
}

KEPT static void *drop_in_thread(void *object)
{
    drop((id)object);
    return NULL;
}

KEPT static void freed_by_thread(void)
{
    Duck *duck = make_duck();
    pthread_t thread;
    pthread_create(&thread, NULL, drop_in_thread, duck);
    pthread_join(thread, NULL);
    [duck quack];
    sink = 21;
}

KEPT static void *use_in_thread(void *object)
{
    [(Duck *)object quack];
    sink = 22;
    return NULL;
}

KEPT static void used_by_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, use_in_thread, dead_duck());
    pthread_join(thread, NULL);
}

KEPT static void use_subclass(void)
{
    Duckling *duck = [Duckling new];
    drop(duck);
    expect([duck weight] == 0);
}

KEPT static void use_string(void)
{
    MyString *string = [MyString new];
    drop(string);
    expect([string length] == 0);
}

KEPT static void ask_for_code(void)
{
    Duck *duck = dead_duck();
    IMP code = [duck methodForSelector:@selector(weight)];
    expect((int)(long)code(duck, @selector(weight)) == 0);
}

KEPT static void look_up_code(void)
{
    Duck *duck = dead_duck();
    IMP code = class_getMethodImplementation(object_getClass(duck), @selector(weight));
    expect((int)(long)code(duck, @selector(weight)) == 0);
}

KEPT static void ask_whether(void)
{
    expect(![dead_duck() respondsToSelector:@selector(quack)]);
}

KEPT static void compare_dead(void)
{
    expect(![dead_duck() isEqual:@"a"]);
}

KEPT static void ask_class(void)
{
    expect([dead_duck() class] == Nil);
}

KEPT static void ask_kind(void)
{
    expect(![dead_duck() isKindOfClass:[Duck class]]);
}

KEPT static void call_delegate(void)
{
    Nest *nest = [Nest new];
    Duck *duck = make_duck();
    [nest setDelegate:duck];
    drop(duck);
    [nest wake];
}

KEPT static void forward(void)
{
    Duck *duck = make_duck();
    Duck *proxy = (Duck *)[Proxy proxyFor:duck];
    drop(duck);
    [proxy weight];
    drop(proxy);
}

KEPT static void use_proxy(void)
{
    Duck *proxy = (Duck *)[Proxy proxyFor:nil];
    drop(proxy);
    expect([proxy weight] == 0);
}

KEPT static void use_plain(void)
{
    Plain *plain = [Plain make];
    [plain destroy];
    expect([plain value] == 0);
}

KEPT static void release_owner(void)
{
    drop([Owner new]);
}

KEPT static void use_itself(void)
{
    drop([Swan new]);
}

KEPT static void sort_dead(void)
{
    NSMutableArray *array = array_with_dead();
    [array addObject:make_duck()];
    [array sortUsingSelector:@selector(compareWeight:)];
    sink = 36;
}

KEPT static void enumerate(void)
{
    for (Duck *duck in array_with_dead()) {
        [duck quack];
    }
    sink = 37;
}

KEPT static void ask_for_key(void)
{
    expect([dead_duck() valueForKey:@"weight"] == nil);
}

KEPT static void catch_it(void)
{
    @try {
        [dead_duck() quack];
        [NSException raise:@"Mine" format:@"no reason"];
    } @catch (NSException *exception) {
        sink = 39;
    }
}

@interface Watcher : NSObject
@end

@implementation Watcher
- (void)observeValueForKeyPath:(NSString *)path
                      ofObject:(id)object
                        change:(NSDictionary *)change
                       context:(void *)context
{
    sink++;
}
@end

KEPT static void use_observed(void)
{
    Duck *duck = make_duck();
    Watcher *watcher = [Watcher new];
    [duck addObserver:watcher forKeyPath:@"weight" options:0 context:NULL];
    [duck setWeight:8];
    drop(duck);
    [duck setWeight:9];
    sink = 40;
}

KEPT static void tell_watcher(void)
{
    Duck *duck = make_duck();
    Watcher *watcher = [Watcher new];
    [duck addObserver:watcher forKeyPath:@"weight" options:0 context:NULL];
    drop(watcher);
    [duck setWeight:9];
    sink = 41;
}

KEPT static void copy_dead(void)
{
    expect([dead_duck() copy] == nil);
}

KEPT static void add_dead(void)
{
    NSMutableArray *array = [NSMutableArray new];
    [array addObject:dead_duck()];
    sink = 43;
}

KEPT static void take_address(void)
{
    id duck = dead_duck();
    expect([(NSObject *)duck hash] == 0);
}

KEPT static void call_kept_dealloc(void)
{
    Duck *duck = make_duck();
    IMP dealloc = [duck methodForSelector:@selector(dealloc)];
    drop(duck);
    dealloc(duck, @selector(dealloc));
    sink = 45;
}

/* Gives the object another class, as frameworks do that observe objects. */
KEPT static void use_replaced(void)
{
    Duck *duck = make_duck();
    Class made = objc_lookUpClass("MadeDuck");
    if (made == Nil) {
        made = objc_allocateClassPair([Duck class], "MadeDuck", 0);
        objc_registerClassPair(made);
    }
    object_setClass(duck, made);
    drop(duck);
    expect([duck weight] == 0);
}

/* Calls code that the program asked for while the object was alive. No message is looked up. */
KEPT static void call_kept_code(void)
{
    Duck *duck = make_duck();
    int (*weight)(id, SEL) = (int (*)(id, SEL))[duck methodForSelector:@selector(weight)];
    expect(weight(duck, @selector(weight)) == 7);
    drop(duck);
    expect(weight(duck, @selector(weight)) == 0);
}

KEPT static void call_kept_large(void)
{
    Duck *duck = make_duck();
    large (*measures)(id, SEL) = (large(*)(id, SEL))[duck methodForSelector:@selector(measures)];
    large all = measures(duck, @selector(measures));
    expect(all.words[8] == 9);
    drop(duck);
    all = measures(duck, @selector(measures));
    expect(all.words[0] == 0 && all.words[8] == 0);
}

KEPT static void call_kept_double(void)
{
    Duckling *duck = [Duckling new];
    double (*speed)(id, SEL) =
        (double (*)(id, SEL))class_getMethodImplementation([Duckling class], @selector(speed));
    expect(speed(duck, @selector(speed)) == 2.5);
    drop(duck);
    expect(speed(duck, @selector(speed)) == 0);
}

/* Keeps the result of the runtime's own lookup over many messages, as loops do. The selector is not
 * passed on. */
KEPT static void call_kept_lookup(void)
{
    Duck *duck = make_duck();
    void (*quack)(id, SEL) = (void (*)(id, SEL))objc_msg_lookup(duck, @selector(quack));
    quack(nil, NULL);
    quack(duck, NULL);
    drop(duck);
    quack(duck, NULL);
    sink = 51;
}

/* The original method, which the replacing method calls. */
static int (*first_weight)(id, SEL);

KEPT static int doubled_weight(id self, SEL selector)
{
    const int weight = first_weight(self, selector);
    return 2 * weight;
}

KEPT static void call_replaced_method(void)
{
    Duckling *duck = [Duckling new];
    Method method = class_getInstanceMethod([Duck class], @selector(weight));
    first_weight = (int (*)(id, SEL))method_setImplementation(method, (IMP)doubled_weight);
    [duck setWeight:4];
    expect([duck weight] == 8);
    drop(duck);
    expect(doubled_weight(duck, @selector(weight)) == 0);
    method_setImplementation(method, (IMP)first_weight);
}

typedef void (*mistake)(void);

static const mistake mistakes[] = {
    NULL,          send_message,    release_again,      drain_pool,      retain_again,
    perform,       perform_later,   invoke,             notify,          fire_timer,
    tell_all,      describe_array,  find_in_array,      empty_array,     find_in_dictionary,
    find_in_set,   format_text,     get_large,          get_long_double, get_double,
    get_float,     freed_by_thread, used_by_thread,     use_subclass,    use_string,
    ask_for_code,  look_up_code,    ask_whether,        compare_dead,    ask_class,
    ask_kind,      call_delegate,   forward,            use_proxy,       use_plain,
    release_owner, use_itself,      sort_dead,          enumerate,       ask_for_key,
    catch_it,      use_observed,    tell_watcher,       copy_dead,       add_dead,
    take_address,  call_kept_dealloc, use_replaced, call_kept_code, call_kept_large,
    call_kept_double, call_kept_lookup, call_replaced_method};

enum { MISTAKES = sizeof(mistakes) / sizeof(mistakes[0]) };

/* Uses objects without mistakes. */
static void work(void)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    NSMutableArray *all = [NSMutableArray array];
    for (int i = 0; i < 2000; i++) {
        Duck *duck = [[Duck new] autorelease];
        [duck setWeight:i];
        [all addObject:duck];
        if (i % 3 == 0) {
            [all removeObjectAtIndex:0];
        }
    }
    long sum = 0;
    for (Duck *duck in all) {
        sum += [duck weight] + (long)[duck speed] + (long)[duck depth];
    }
    NSString *made = [NSString stringWithFormat:@"%ld %lu", sum, (unsigned long)[all count]];
    printf("%s\n", [made UTF8String]);
    [pool drain];
}

/* One thread creates these objects and another frees them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Duck *shared[16];

static void *exchange(void *unused)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    for (int i = 0; i < 2000; i++) {
        Duck *duck = make_duck();
        pthread_mutex_lock(&lock);
        Duck *old = shared[i % 16];
        shared[i % 16] = duck;
        pthread_mutex_unlock(&lock);
        [old release];
        [[[Duckling new] autorelease] setWeight:i];
    }
    [pool drain];
    return unused;
}

static void run_threads(void)
{
    pthread_t threads[6];
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    exchange(NULL); /* one thread initialises the classes first */
    for (int i = 0; i < 6; i++) {
        pthread_create(&threads[i], NULL, exchange, NULL);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("all threads are done\n");
    [pool drain];
}

static int exchanging;

static void *exchange_on(void *is_over)
{
    exchange(NULL);
    __atomic_add_fetch(&exchanging, 1, __ATOMIC_SEQ_CST);
    while (!*(volatile bool *)is_over) {
        exchange(NULL);
    }
    return NULL;
}

/* A child that is forked while other threads free objects makes its own mistake. */
static void fork_among_threads(void)
{
    pthread_t threads[3];
    volatile bool is_over = false;
    int status = 1;
    work(); /* afterwards all classes are initialised, so no thread holds the runtime's lock */
    exchange(NULL);
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, exchange_on, (void *)&is_over);
    }
    while (__atomic_load_n(&exchanging, __ATOMIC_SEQ_CST) < 3) {
        usleep(1000);
    }
    pthread_mutex_lock(&lock); /* the child must not inherit this lock held by another thread */
    const pid_t child = fork();
    pthread_mutex_unlock(&lock);
    if (child == 0) {
        work();
        used_by_thread();
        _exit(0);
    }
    waitpid(child, &status, 0);
    is_over = true;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("the child returned %d\n", status);
}

/* Checks that the agent has not replaced any method. */
static void check_methods(void)
{
    Dl_info own;
    Dl_info found;
    unsigned int count = 0;
    Method *methods = class_copyMethodList([Duck class], &count);
    dladdr((void *)check_methods, &own);
    for (unsigned int i = 0; i < count; i++) {
        const void *code = (const void *)method_getImplementation(methods[i]);
        const void *sent =
            (const void *)class_getMethodImplementation([Duckling class], method_getName(methods[i]));
        expect(sent == code && dladdr(code, &found) != 0 && found.dli_fbase == own.dli_fbase);
    }
    free(methods);
}

static void run(int number)
{
    NSAutoreleasePool *pool = [NSAutoreleasePool new];
    if (number < 0) {
        check_methods();
    } else if (number > 0 && number < MISTAKES) {
        mistakes[number]();
    } else {
        work();
    }
    [pool drain];
}

int main(int count, char **words)
{
    char line[64];
    setvbuf(stdout, NULL, _IONBF, 0);
    if (count > 1 && strcmp(words[1], "-") == 0) {
        printf("ready\n");
        while (fgets(line, sizeof(line), stdin) != NULL) {
            run(atoi(line));
            printf("%s", line);
        }
        return 0;
    }
    if (count > 1 && strcmp(words[1], "threads") == 0) {
        run_threads();
        return 0;
    }
    if (count > 1 && strcmp(words[1], "fork") == 0) {
        NSAutoreleasePool *pool = [NSAutoreleasePool new];
        fork_among_threads();
        [pool drain];
        return 0;
    }
    if (count == 1) {
        work();
    }
    for (int i = 1; i < count; i++) {
        run(atoi(words[i]));
    }
    return 0;
}

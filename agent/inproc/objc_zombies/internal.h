/* What the files of objc_zombies/ share. */
#ifndef SJ_AGENT_INPROC_OBJC_ZOMBIES_INTERNAL_H
#define SJ_AGENT_INPROC_OBJC_ZOMBIES_INTERNAL_H

#include "agent/abi/zombies.h"
#include "agent/inproc/heap_guard/objects.h"

#include <stddef.h>
#include <stdint.h>

/* Methods of GCC's runtime, as compilers lay them out. */
typedef struct sj_gcc_method {
    const void *selector;
    const char *types;
    uint64_t code;
} sj_gcc_method;

typedef struct sj_gcc_methods {
    struct sj_gcc_methods *next;
    int32_t count;
    sj_gcc_method methods[];
} sj_gcc_methods;

/* A class of GCC's runtime, as compilers lay it out. */
typedef struct sj_gcc_class {
    const struct sj_gcc_class *isa;
    const struct sj_gcc_class *super;
    const char *name;
    long version;
    unsigned long info;
    long instance_bytes;
    const struct sj_gcc_ivars *ivars;
    sj_gcc_methods *methods;
    const void *dispatch; /* sj_gcc_dispatch */
    const void *unused[8];
} sj_gcc_class;

typedef struct sj_gcc_ivar {
    const char *name;
    const char *type;
    int32_t offset;
} sj_gcc_ivar;

typedef struct sj_gcc_ivars {
    int32_t count;
    sj_gcc_ivar ivars[];
} sj_gcc_ivars;

enum { SJ_GCC_IS_CLASS = 1, SJ_GCC_IS_META = 2, SJ_GCC_INITIALIZED = 4, SJ_GCC_RESOLVED = 8 };

/* The runtime's own functions; all of them are there when sj_objc_find_runtime has found it. */
typedef struct sj_gcc_runtime {
    const sj_gcc_class *(*look_up_class)(const char *name);
    const char *(*class_name)(const sj_gcc_class *class);
    const char *(*selector_name)(const void *selector);
    const char *(*selector_types)(const void *selector);
    const void *(*register_selector)(const char *name);
    sj_gcc_method *(*instance_method)(const sj_gcc_class *class, const void *selector);
    uint64_t (*implementation)(const void *method);
    uint64_t (*set_implementation)(void *method, uint64_t implementation);
    uint64_t (*class_implementation)(const sj_gcc_class *class, const void *selector);
    uint64_t (*look_up)(const void *receiver, const void *selector);
    int (*size_of_type)(const char *type);
    const char *(*skip_qualifiers)(const char *type);
    char (*responds)(const sj_gcc_class *class, const void *selector);
    int (*list_classes)(const sj_gcc_class **classes, int room);
    void (*update_dispatch)(const sj_gcc_class *class);
    int (*lock)(void *mutex);
    int (*unlock)(void *mutex);
    void *const *mutex;                 /* the runtime's own, which a thread may take again */
    const void *const *shared_dispatch; /* the table of all classes without one of their own */
} sj_gcc_runtime;

extern sj_gcc_runtime sj_objc_gcc __attribute__((visibility("hidden")));

/* sj_objc_find_runtime: GCC's runtime is loaded. Takes the loader's lock. */
bool sj_objc_find_runtime(void);

/* sj_objc_set_code has a method of `class` run other code from now on. Takes the runtime's lock.
 * Any thread. The class's subclasses follow as far as the runtime lets them. */
void sj_objc_set_code(const sj_gcc_class *class, sj_gcc_method *method, uint64_t code);

/* Where objects come from that are to be let go, and so how: the root class whose -dealloc was
 * called, or the function that was. */
typedef enum sj_objc_source {
    SJ_OBJC_NSOBJECT = 0,
    SJ_OBJC_NSPROXY = 1,
    SJ_OBJC_DEALLOCATE = 2, /* NSDeallocateObject */
    SJ_OBJC_DISPOSE = 3,    /* object_dispose: root classes of the program's own */
    SJ_OBJC_SOURCES
} sj_objc_source;

/* Doors: code that the program may keep for ever, because it finds its way from a word each. */
typedef enum sj_objc_door {
    SJ_DOOR_ANSWER = 0, /* what every message to a freed object runs */
    SJ_DOOR_NSOBJECT,
    SJ_DOOR_NSPROXY,
    SJ_DOOR_RETAIN,
    SJ_DOOR_RELEASE,
    SJ_DOOR_AUTORELEASE,
    SJ_DOOR_ALLOCATE,
    SJ_DOOR_GUARD,
    SJ_DOORS
} sj_objc_door;

enum {
    SJ_DOORS_DATA_BYTES = 4096,
    SJ_DOORS_CODE_BYTES = 4096,
    SJ_DOOR_BYTES = 16,
    SJ_DISPATCH_BUCKET = 32
};

/* What stays in the program when the agent has left. */
typedef struct sj_doors {
    uint64_t magic;
    uint64_t leads_to[SJ_DOORS];
    char name[16];
    sj_gcc_class zombie; /* the class that freed objects have */
    sj_gcc_class meta;
    uint64_t dispatch[8];                /* a sparse array without buckets: */
    uint64_t bucket[SJ_DISPATCH_BUCKET]; /* each selector is found in here */
} sj_doors;

extern sj_doors *sj_doors_now __attribute__((visibility("hidden"))); /* NULL: none were made */

/* sj_doors_open makes the doors, or finds those that an agent left; false: no memory, or the
 * processor is not supported. sj_doors_close leads them to what needs no agent: `originals`. */
bool sj_doors_open(void);
void sj_doors_close(const uint64_t originals[SJ_DOORS]);
uint64_t sj_door(sj_objc_door door);

/* sj_arch_doors_write writes SJ_DOORS doors of SJ_DOOR_BYTES, each a jump to where its word of
 * `leads_to` says, and behind them code that returns zero in all registers, whose offset is
 * returned; 0: the processor is not supported. */
size_t sj_arch_doors_write(uint8_t *code, const uint64_t *leads_to);

/* Doors of methods: each compares its receiver's class with the zombie class, whose messages it
 * answers, and goes on to the method. */
typedef enum sj_receiver {
    SJ_RECEIVER_FIRST = 0, /* it is the first argument */
    SJ_RECEIVER_SECOND,    /* the second, behind the address of a result in memory */
    SJ_RECEIVERS
} sj_receiver;

enum { SJ_METHOD_DOOR_BYTES = 32 };

/* What these doors read. */
typedef struct sj_method_words {
    uint64_t zombie; /* the class */
    uint64_t answer; /* the door of answers */
} sj_method_words;

/* sj_methods_begin has all methods of the program's own modules entered through doors;
 * sj_methods_follow those of the classes and categories that the runtime has just loaded
 * from `module`; sj_methods_end none. They take the runtime's lock. */
void sj_methods_begin(void);
void sj_methods_follow(const void *module);
void sj_methods_end(void);
void sj_methods_after_fork(void);

/* sj_arch_method_doors_begin writes what all doors share to `code`, at most a page; false: the
 * processor is not supported. sj_arch_method_doors_write writes `count` doors for receivers of that
 * kind to `at`. Each has a target and a selector, two words, as far from the door as `words` is
 * from `shared`. All of it lies within reach of relative addresses. */
bool sj_arch_method_doors_begin(uint8_t *code, const sj_method_words *words);
void sj_arch_method_doors_write(uint8_t *at, uint32_t count, sj_receiver kind,
                                const uint8_t *shared, const sj_method_words *words);

/* sj_arch_objc_answer is what SJ_DOOR_ANSWER leads to (arch/<machine>/answer.S): it asks
 * sj_objc_answer and clears all other registers that results are in. */
void sj_arch_objc_answer(void);

typedef struct sj_answer {
    uint64_t value;
    uint64_t floats; /* zeros that are pushed to the stack of the floating-point unit */
} sj_answer;

/* sj_objc_answer answers a message: first to third are the arguments as integers, `site` is where
 * it returns to. */
sj_answer sj_objc_answer(void *first, void *second, void *third, uint64_t site);

static inline bool sj_objc_is_zombie(const void *object)
{
    return *(const sj_gcc_class *const *)object == &sj_doors_now->zombie;
}

/* A freed object that is kept; its stack lies behind it. */
typedef struct sj_kept {
    void *_Atomic object; /* NULL: it has been let go */
    const sj_gcc_class *class;
    uint32_t source;
    uint32_t bytes;
    _Atomic uint32_t is_reported;
    uint32_t reserved;
    sj_zombie_trace release; /* where no stacks are kept, without its registers */
} sj_kept;

typedef enum sj_let_go {
    SJ_LET_GO_FULL = 0,
    SJ_LET_GO_OLD,
    SJ_LET_GO_PRESSURE,
    SJ_LET_GO_LEFT
} sj_let_go;

/* Frees a kept object by the program's own means. */
typedef void (*sj_queue_let_go)(void *object, const sj_gcc_class *class, sj_objc_source source);

/* sj_queue_open maps the room for the objects that the settings ask for, once; objects are let go
 * by `by`. */
bool sj_queue_open(const sj_zombie_objects *settings, sj_queue_let_go by);

/* sj_queue_keep puts an object into the calling thread's queue; it has the zombie class then.
 * False: it cannot be kept, the caller frees it. Async-signal-safe but for letting others go. */
bool sj_queue_keep(void *object, const sj_gcc_class *class, sj_objc_source source);

/* sj_queue_find returns what is known of a kept object; NULL: nothing any more. */
sj_kept *sj_queue_find(const void *object);

/* sj_queue_empty lets all objects go, or the older half of each thread's. */
void sj_queue_empty(sj_let_go why, bool half);

/* sj_queue_let_go_one lets one kept object go after a use, if it can be done now. */
void sj_queue_let_go_one(sj_kept *kept);

void sj_queue_after_fork(void);

/* What is known of a class, bits: its freed objects are kept; they have instance variables of C++,
 * which -[NSObject finalize] destroys; the policy names it for guarded blocks. */
enum { SJ_CLASS_WATCHED = 1, SJ_CLASS_DESTROYED = 2, SJ_CLASS_GUARDED = 4, SJ_CLASS_NOTED = 8 };

/* The selector of the code that destroys them; found before any class is judged. */
extern const void *sj_class_destroy_selector __attribute__((visibility("hidden")));

/* sj_class_judge returns these bits of a class that has instances. */
uint32_t sj_class_judge(const sj_gcc_class *class, const sj_zombie_settings *settings);

/* sj_class_is_watched: freed objects of a class are kept. */
bool sj_class_is_watched(const sj_gcc_class *class, const sj_zombie_settings *settings);

/* sj_objc_guard_begin has instances of the classes that the policy names for it allocated in
 * guarded blocks: `root` is a root class. sj_objc_guard_end gives its method back. */
void sj_objc_guard_begin(const sj_gcc_class *root, uint64_t *originals);
void sj_objc_guard_end(void);

/* sj_history_open maps the room for events; once. `originals` is of all doors, `count_owners` the
 * address of Foundation's NSExtraRefCount. sj_history_begin notes what becomes of instances of a
 * root class from now on; sj_history_end gives its methods back. */
bool sj_history_open(uint64_t *originals, uint64_t count_owners);
void sj_history_begin(const sj_gcc_class *root);
void sj_history_end(void);

/* sj_history_write writes the events of an object: the newest, and its allocation. */
void sj_history_write(sj_zombie_object *target, const void *object);

/* sj_report_message reports a message to a freed object, and returns what is to follow. */
sj_zombie_on_use sj_report_message(sj_kept *kept, const void *selector, uint64_t site);

#endif

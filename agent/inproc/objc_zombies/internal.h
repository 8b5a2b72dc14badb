/* Internal header of objc_zombies; not included outside this folder. */
#ifndef SJ_AGENT_INPROC_OBJC_ZOMBIES_INTERNAL_H
#define SJ_AGENT_INPROC_OBJC_ZOMBIES_INTERNAL_H

#include "agent/abi/page.h"
#include "agent/abi/zombies.h"
#include "agent/inproc/heap_guard/objects.h"

#include <stddef.h>
#include <stdint.h>

/* A method of GCC's runtime, in the layout that compilers emit. */
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

/* A class of GCC's runtime, in the layout that compilers emit. */
typedef struct sj_gcc_class {
    const struct sj_gcc_class *isa;
    const struct sj_gcc_class *super;
    const char *name;
    long version;
    unsigned long info;
    long instance_bytes;
    const struct sj_gcc_ivars *ivars;
    sj_gcc_methods *methods;
    const void *dispatch; /* Sparse array of implementations, indexed by selector. */
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

/* Functions and data of the runtime. All are set once sj_objc_zombies_find_runtime has returned
 * true. */
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
    int (*list_classes)(const sj_gcc_class **classes, int capacity);
    void (*update_dispatch)(const sj_gcc_class *class);
    int (*lock)(void *mutex);
    int (*unlock)(void *mutex);
    void *const *mutex; /* The runtime's own recursive mutex. */
    /* `dispatch` of all classes that have no dispatch table of their own yet. */
    const void *const *shared_dispatch;
} sj_gcc_runtime;

extern sj_gcc_runtime sj_objc_gcc __attribute__((visibility("hidden")));

/* Finds GCC's runtime and sets sj_objc_gcc. Returns false if the runtime is not loaded. Takes the
 * loader's lock. */
bool sj_objc_zombies_find_runtime(void);

/* Makes a method of `class` run `code`. The runtime updates subclasses that have dispatch tables.
 * Takes the runtime's lock. Thread-safe. */
void sj_objc_set_code(const sj_gcc_class *class, sj_gcc_method *method, uint64_t code);

/* How an object was deallocated: the root class whose -dealloc ran, or the function that was
 * called. This determines how its memory is freed. */
typedef enum sj_objc_source {
    SJ_OBJC_NSOBJECT = 0,
    SJ_OBJC_NSPROXY = 1,
    SJ_OBJC_DEALLOCATE = 2, /* NSDeallocateObject */
    SJ_OBJC_DISPOSE = 3,    /* object_dispose, which root classes of the program use */
    SJ_OBJC_SOURCES
} sj_objc_source;

/* Trampolines: code that the program may call for ever. Each trampoline jumps to its address in
 * sj_objc_trampolines.targets. */
typedef enum sj_objc_trampoline {
    SJ_TRAMPOLINE_FREED_MESSAGE = 0, /* Runs for each message to a freed object. */
    SJ_TRAMPOLINE_NSOBJECT,
    SJ_TRAMPOLINE_NSPROXY,
    SJ_TRAMPOLINE_RETAIN,
    SJ_TRAMPOLINE_RELEASE,
    SJ_TRAMPOLINE_AUTORELEASE,
    SJ_TRAMPOLINE_ALLOCATE,
    SJ_TRAMPOLINE_GUARD,
    SJ_TRAMPOLINES
} sj_objc_trampoline;

enum {
    SJ_TRAMPOLINES_DATA_BYTES = SJ_PAGE_MOST_BYTES,
    SJ_TRAMPOLINES_CODE_BYTES = SJ_PAGE_MOST_BYTES,
    SJ_TRAMPOLINE_BYTES = 16,
    SJ_DISPATCH_BUCKET = 32
};

/* Data of the trampolines. The data and the code stay in the program when the agent is unloaded. */
typedef struct sj_objc_trampolines {
    uint64_t magic;
    uint64_t targets[SJ_TRAMPOLINES];
    char name[16];
    sj_gcc_class zombie; /* The class of freed objects. */
    sj_gcc_class meta;
    /* A sparse array. It has no buckets of its own, so every selector finds the first word of
     * `bucket`. */
    uint64_t dispatch[8];
    uint64_t bucket[SJ_DISPATCH_BUCKET];
} sj_objc_trampolines;

extern sj_objc_trampolines *sj_objc_trampolines_now
    __attribute__((visibility("hidden"))); /* NULL until sj_objc_trampolines_open. */

/* sj_objc_trampolines_open creates the trampolines, or finds those of an earlier agent. It returns
 * false if out of memory, or if the processor is not supported. sj_objc_trampolines_detach
 * redirects the trampolines to `originals`, functions that do not need the agent. */
bool sj_objc_trampolines_open(void);
void sj_objc_trampolines_detach(const uint64_t originals[SJ_TRAMPOLINES]);
uint64_t sj_objc_trampoline_address(sj_objc_trampoline trampoline);

/* Writes SJ_TRAMPOLINES trampolines of SJ_TRAMPOLINE_BYTES each, which jump to the addresses in
 * `targets`. After the trampolines, writes a function that returns zero in all result registers.
 * Returns the offset of this function, or 0 if the processor is not supported. */
size_t sj_arch_trampolines_write(uint8_t *code, const uint64_t *targets);

/* A method trampoline compares the receiver's class with the class of freed objects. If they are
 * equal, the trampoline jumps to the handler of freed messages; otherwise it jumps to the method.
 */
typedef enum sj_receiver {
    SJ_RECEIVER_FIRST = 0, /* The receiver is the first argument. */
    SJ_RECEIVER_SECOND,    /* The receiver follows the address of a result in memory. */
    SJ_RECEIVERS
} sj_receiver;

enum { SJ_METHOD_TRAMPOLINE_BYTES = 32 };

/* Words that all method trampolines read. */
typedef struct sj_method_words {
    uint64_t zombie;  /* The class of freed objects. */
    uint64_t handler; /* The trampoline SJ_TRAMPOLINE_FREED_MESSAGE. */
} sj_method_words;

/* sj_own_methods_begin replaces all methods of the program's own modules by method trampolines.
 * sj_own_methods_add_module replaces the methods of classes and categories that the runtime has
 * just loaded from `module`. sj_own_methods_end restores the methods. These functions take the
 * runtime's lock. */
void sj_own_methods_begin(void);
void sj_own_methods_add_module(const void *module);
void sj_own_methods_end(void);
void sj_own_methods_after_fork(void);

/* sj_arch_method_trampolines_begin writes the code that all method trampolines share to `code`, at
 * most a page. It returns false if the processor is not supported.
 *
 * sj_arch_method_trampolines_write writes `count` trampolines for receivers of `kind` to `at`. Each
 * trampoline reads two words of its own: a target and a selector. The distance from a trampoline to
 * its words equals the distance from `shared` to `words`. All of them must be within reach of
 * relative addresses. */
bool sj_arch_method_trampolines_begin(uint8_t *code, const sj_method_words *words);
void sj_arch_method_trampolines_write(uint8_t *at, uint32_t count, sj_receiver kind,
                                      const uint8_t *shared, const sj_method_words *words);

/* Target of SJ_TRAMPOLINE_FREED_MESSAGE (arch/<machine>/freed_message.S). Calls
 * sj_objc_handle_freed_message and clears all other result registers. */
void sj_arch_freed_message(void);

typedef struct sj_message_result {
    uint64_t value;
    uint64_t x87_zeros; /* Number of zeros to push to the x87 register stack. */
} sj_message_result;

/* Handles a message to a freed object. `first`, `second` and `third` are the first three integer
 * arguments of the message. `site` is its return address. */
sj_message_result sj_objc_handle_freed_message(void *first, void *second, void *third,
                                               uint64_t site);

static inline bool sj_objc_is_zombie(const void *object)
{
    return *(const sj_gcc_class *const *)object == &sj_objc_trampolines_now->zombie;
}

/* The record of a freed object whose memory is kept. If stacks are kept, the stack of its release
 * follows this structure. */
typedef struct sj_kept {
    void *_Atomic object; /* NULL once its memory is freed. */
    const sj_gcc_class *class;
    uint32_t source;
    uint32_t bytes;
    _Atomic uint32_t is_reported;
    uint32_t reserved;
    sj_zombie_trace release; /* `registers` is missing if no stacks are kept. */
} sj_kept;

typedef enum sj_object_release_reason {
    SJ_OBJECT_RELEASE_FULL = 0,
    SJ_OBJECT_RELEASE_OLD,
    SJ_OBJECT_RELEASE_PRESSURE,
    SJ_OBJECT_RELEASE_DETACH
} sj_object_release_reason;

/* Frees the memory of a kept object by the function of the program that `source` names. */
typedef void (*sj_queue_free_function)(void *object, const sj_gcc_class *class,
                                       sj_objc_source source);

/* Maps the memory for the records that the settings ask for. `by` is the function that frees
 * objects; a second call only replaces it. Returns false if out of memory. */
bool sj_queue_open(const sj_zombie_objects *settings, sj_queue_free_function by);

/* Adds an object to the calling thread's queue and sets its class to the class of freed objects.
 * Returns false if the object cannot be kept: then the caller frees it. May free other objects;
 * apart from this, async-signal-safe. */
bool sj_queue_keep(void *object, const sj_gcc_class *class, sj_objc_source source);

/* Returns the record of a kept object, or NULL. */
sj_kept *sj_queue_find(const void *object);

/* Frees all kept objects or, if `half` is true, the older half of each thread's queue. Skips a
 * queue whose thread does not leave it in time. */
void sj_queue_empty(sj_object_release_reason why, bool half);

/* Frees a kept object after a message to it. Does nothing if the object cannot be freed now. */
void sj_queue_free_used(sj_kept *kept);

void sj_queue_after_fork(void);

/* Facts of a class, as bits:
 * - WATCHED: its freed objects are kept.
 * - HAS_DESTRUCTOR: the class has C++ instance variables, which -[NSObject finalize] destroys.
 * - GUARDED: the policy guards the memory of its objects.
 * - HAS_HISTORY: the history of its objects is recorded. */
enum {
    SJ_CLASS_WATCHED = 1,
    SJ_CLASS_HAS_DESTRUCTOR = 2,
    SJ_CLASS_GUARDED = 4,
    SJ_CLASS_HAS_HISTORY = 8
};

/* Selector of the method, emitted by the compiler, that destroys C++ instance variables. Set it
 * before the first call of sj_class_judge. */
extern const void *sj_class_destroy_selector __attribute__((visibility("hidden")));

/* Returns the SJ_CLASS bits of a class. Returns 0 for a class without a cached result while the
 * recorder is writing the patterns. */
uint32_t sj_class_judge(const sj_gcc_class *class, const sj_zombie_settings *settings);

/* True if freed objects of the class are kept. */
bool sj_class_is_watched(const sj_gcc_class *class, const sj_zombie_settings *settings);

/* sj_objc_guard_begin replaces +allocWithZone: of a root class, and saves the original in
 * `originals`. Objects of classes that the policy names are then allocated in guarded blocks.
 * sj_objc_guard_end restores the method. */
void sj_objc_guard_begin(const sj_gcc_class *root, uint64_t *originals);
void sj_objc_guard_end(void);

/* sj_history_open maps the memory for events, once. `originals` has the code of the methods that
 * trampolines replace, indexed by sj_objc_trampoline; sj_history_begin adds to it. `count_owners`
 * is the address of Foundation's NSExtraRefCount. sj_history_open returns false if out of memory,
 * or if `count_owners` was 0 in its first call.
 *
 * sj_history_begin replaces the methods of a root class that the history records. sj_history_end
 * restores the methods of all root classes. */
bool sj_history_open(uint64_t *originals, uint64_t count_owners);
void sj_history_begin(const sj_gcc_class *root);
void sj_history_end(void);

/* Writes the latest events of `object` to `target`, back to its allocation if they fit. */
void sj_history_write(sj_zombie_object *target, const void *object);

/* Reports a message to a freed object; reports each object once. Returns the action that the policy
 * asks for. */
sj_zombie_on_use sj_report_message(sj_kept *kept, const void *selector, uint64_t site);

#endif

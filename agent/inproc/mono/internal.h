/* Internal header of mono; not included outside this folder. */
#ifndef SJ_AGENT_INPROC_MONO_INTERNAL_H
#define SJ_AGENT_INPROC_MONO_INTERNAL_H

#include "agent/inproc/mono/mono.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/value_text.h"
#include "agent/inproc/recorder/write.h"
#include "proto/block/value.h"

#include <stdatomic.h>
#include <string.h>

/* The recorder's reply about an assembly. */
typedef struct sj_mono_assembly {
    uint32_t first_function; /* Function of token 1. 0: the assembly is not recorded. */
    uint32_t count;          /* Number of tokens. */
    uint32_t value_count;    /* Number of methods that record values. */
    /* One bit for each token, then the sj_link_method_values. The memory has
     * sj_mono_assembly_bytes; the receiver unmaps it. */
    uint8_t *wanted;
    bool is_unreadable; /* No file lists its methods, so each is named by itself. */
    bool has_lines; /* True if the assembly has to report which instructions of its methods ran. */
} sj_mono_assembly;

/* Returns the size of the memory that `wanted` points to. */
static inline size_t sj_mono_assembly_bytes(uint32_t count, uint32_t value_count)
{
    return (count + 31) / 32 * 4 + value_count * sizeof(sj_link_method_values);
}

/* Code of functions, by rising address. */
typedef struct sj_mono_code {
    sj_link_code head;
    const sj_link_code_function *functions;
    /* A memory file with all of the code, as `head` says. -1: there is none, and the bytes can be
     * read at their addresses. */
    int file;
    /* True if a thread may be running the code: then hooks are prepared for a tracer, else they are
     * made at once. */
    bool runs;
    uint8_t *marks; /* One byte for each function; set to 1 if the function was hooked. */
} sj_mono_code;

/* Registers with the runtime of the process. May be called again after sj_mono_stop. With
 * `is_attached` the agent will be unloaded, so what the runtime keeps of it stays valid
 * (hooks/lasting.h). Returns SJ_ENOTFOUND if there is no runtime, or if it lacks a function that is
 * needed. Returns SJ_ENOMEM if out of memory. One thread at a time. */
SJ_MUST_CHECK sj_status sj_mono_start(bool is_attached);

/* True if the process has a runtime that sj_mono_start cannot use. Writes what it lacks, and how it
 * reports methods that it compiles. Runs no code of the program. */
bool sj_mono_find_lacking(sj_link_no_methods *lacking);

/* Hooks in place the code of the first 12,000 wanted methods that are compiled from now on. Methods
 * that cannot be hooked are listed. Callbacks record all others. */
void sj_mono_prefer_in_place(void);

/* Calls `start` once, before the runtime of a module that was just loaded initialises itself. May
 * be called for each module, under the loader's lock, until sj_mono_start succeeds. */
void sj_mono_watch_for_launch(void (*start)(void));

/* Makes the runtime count which instructions of methods run, and report them before it shuts down.
 * The runtime then reads symbol files and shows lines in stack traces. Call it after sj_mono_start
 * of a launched program and before its main. Do not call it if the runtime already reads symbol
 * files: that would end the program by an assertion. Returns false if the runtime refuses. */
bool sj_mono_count_lines(void);

/* Prepares hooks of all methods that the runtime of an attached process has compiled without calls
 * of ours. Call it once after sj_mono_start. Returns false, and does nothing, if the calling thread
 * does not belong to the runtime. */
bool sj_mono_plan_compiled(void);

/* Asks about all assemblies again and follows the replies. Methods that are not wanted now are not
 * recorded any longer. Hooks of methods that are wanted now and were compiled are prepared. May be
 * called often, after sj_mono_start. Returns false as sj_mono_plan_compiled does. */
bool sj_mono_reselect(void);

/* Callbacks of the runtime, in the order in which they are registered. The filter is last, so that
 * the methods that it chooses have callbacks to call. */
enum {
    SJ_MONO_ENTER,
    SJ_MONO_LEAVE,
    SJ_MONO_TAIL_CALL,
    SJ_MONO_EXCEPTION_LEAVE,
    SJ_MONO_EXCEPTION_THROW,
    SJ_MONO_METHOD_FREE,
    SJ_MONO_IMAGE_UNLOADING,
    SJ_MONO_INITIALIZED,
    SJ_MONO_CODE_BUFFER,
    SJ_MONO_ASSEMBLY_LOADED,
    SJ_MONO_FILTER,
    SJ_MONO_CALLBACKS
};

/* MonoProfilerCoverageData: one instruction of a method. */
typedef struct sj_mono_coverage {
    void *method;
    uint32_t offset;
    uint32_t count; /* 0: it did not run. */
    const char *file;
    uint32_t line;
    uint32_t column;
} sj_mono_coverage;

/* Functions of the runtime (Mono's public headers), named by what they return. */
typedef struct sj_mono_api {
    void *(*profiler_create)(void *self);
    /* `callback` is an address; 0 removes the callback. */
    void (*set_callback[SJ_MONO_CALLBACKS])(void *profiler, uint64_t callback);
    void *(*method_class)(void *method);
    uint32_t (*method_token)(void *method);
    char *(*method_full_name)(void *method, int32_t with_signature);
    void (*free)(void *memory);
    void *(*class_image)(void *class);
    const char *(*image_filename)(void *image);
    const char *(*image_name)(void *image);
    const char *(*image_guid)(void *image);
    int32_t (*image_is_dynamic)(void *image);
    uint32_t (*image_entry_point)(void *image);
    void *(*image_assembly)(void *image);
    void *(*assembly_image)(void *assembly);
    void *(*method_signature)(void *method);
    int32_t (*signature_is_instance)(void *signature);
    void *(*signature_params)(void *signature, void **iterator);
    void *(*signature_return)(void *signature);
    int32_t (*type_get_type)(void *type);
    void *(*type_underlying)(void *type);
    int32_t (*type_is_byref)(void *type);
    uint16_t *(*string_chars)(void *string);
    int32_t (*string_length)(void *string);
    void *(*main_assembly)(void);
    void *(*class_of_type)(void *type);
    void *(*class_of_object)(void *object);
    const char *(*class_name)(void *class);
    const char *(*class_namespace)(void *class);
    int32_t (*class_is_enum)(void *class);
    int32_t (*class_is_structure)(void *class);
    int32_t (*class_rank)(void *class);
    void *(*string_class)(void);
    void *(*class_fields)(void *class, void **iterator);
    uint32_t (*field_flags)(void *field);
    uint32_t (*field_offset)(void *field);
    void *(*field_type)(void *field);
    const char *(*field_data)(void *field);
    const char *(*field_name)(void *field);
    uintptr_t (*array_length)(void *array);
    int32_t (*object_hash)(void *object);
    int32_t (*is_shutting_down)(void);
    void *(*root_domain)(void);
    void *(*current_domain)(void);
    void *(*find_code)(void *domain, const void *address);
    void *(*code_start)(void *code);
    int32_t (*code_size)(void *code);
    void *(*code_method)(void *code);
    int32_t (*enable_coverage)(void);
    int32_t (*coverage_data)(void *profiler, void *method,
                             void (*add)(void *self, const sj_mono_coverage *data));
    void (*set_coverage_filter)(void *profiler, uint32_t (*filter)(void *self, void *method));
    void (*set_shutdown_begin)(void *profiler, void (*callback)(void *self));
} sj_mono_api;

extern sj_mono_api sj_mono_runtime;

/* Records the entry of a method. sj_arch_mono_enter jumps here. `context` is Mono's call context,
 * or NULL. */
void sj_mono_on_enter(void *ours, void *method, void *context);

/* Fills sj_mono_runtime. Returns NULL, or the name of the first function that the process lacks. */
const char *sj_mono_find_api(void);

/* A method whose code calls us, or is hooked in place. */
typedef struct sj_mono_method {
    _Atomic uint64_t method; /* MonoMethod*; 0: free. Written last. */
    _Atomic uint32_t function;
    _Atomic uint32_t state; /* An sj_mono_method_state. */
} sj_mono_method;

typedef enum sj_mono_method_state {
    SJ_MONO_NEVER_ENTERED = 0,
    SJ_MONO_WAS_ENTERED = 1,
    SJ_MONO_IS_PATCHED = 2,   /* Its code is hooked in place, so callbacks do not record it. */
    SJ_MONO_TO_BE_PATCHED = 3 /* Its code will be hooked in place as soon as it is compiled. */
} sj_mono_method_state;

enum { SJ_MONO_METHODS_CAPACITY = 1 << 18 };

extern sj_mono_method sj_mono_methods[SJ_MONO_METHODS_CAPACITY];

static inline uint32_t sj_mono_place_of(uint64_t pointer)
{
    enum { BITS = 18 };
    _Static_assert(1 << BITS == SJ_MONO_METHODS_CAPACITY, "the hash has as many bits");
    return (uint32_t)((pointer >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BITS));
}

/* Returns the entry of a method, or NULL. Thread-safe; takes no lock. */
static inline sj_mono_method *sj_mono_find_method(const void *method)
{
    const uint64_t key = (uint64_t)(uintptr_t)method;
    for (uint32_t place = sj_mono_place_of(key);; place = (place + 1) % SJ_MONO_METHODS_CAPACITY) {
        sj_mono_method *entry = &sj_mono_methods[place];
        /* Pairs with the release store in sj_mono_set_method. */
        const uint64_t held = atomic_load_explicit(&entry->method, memory_order_acquire);
        if (held == key) {
            return entry;
        }
        if (held == 0) {
            return NULL;
        }
    }
}

/* Sets which function a method is. A pointer that comes again may be another method. Returns false
 * if the table is full. */
bool sj_mono_set_method(const void *method, uint32_t function);

/* Marks a method as hooked in place. */
void sj_mono_set_patched(const void *method);

typedef struct sj_mono_recipe sj_mono_recipe;

/* A reply of the recorder: which values it wants of a method. */
typedef struct sj_mono_selection {
    uint32_t function; /* 0: the method is not recorded. */
    /* One sj_value_descriptor, or SJ_PLACE_CPU_ENTRY, in each byte, lowest first. */
    uint64_t descriptors;
    bool has_lines; /* True if its assembly reports lines. */
    /* True if rules decide what its calls return, so that its code must be hooked in place. */
    bool in_place;
} sj_mono_selection;

/* The recorder's latest reply about an assembly that has a file. */
typedef struct sj_mono_reply {
    uint32_t first_function; /* 0: not recorded, or each method is named by itself. */
    uint32_t count;
    bool is_unreadable;
    bool has_lines;
    const uint8_t *wanted;
    const sj_link_method_values *values; /* In the memory after the bits. */
    uint32_t value_count;
} sj_mono_reply;

/* Returns the wish for a method definition. `row` is its row, from 1. */
sj_mono_selection sj_mono_selection_of_row(const sj_mono_reply *reply, uint32_t row);

/* Asks about an assembly that was just loaded, and hooks the part of its code that was compiled
 * ahead of time. */
void sj_mono_add_assembly(void *assembly);

/* Does the same for assemblies whose precompiled code runs already. It does not ask the runtime,
 * because the runtime would allocate: a thread that the runtime has stopped may be inside the
 * allocator. */
void sj_mono_hook_precompiled(void);

/* Asks about an assembly by the path of its file and the text of its module id. Returns false if
 * the recorder did not reply. */
bool sj_mono_ask_by_path(const char *path, const char *id, sj_mono_reply *reply);

/* sj_mono_ask_again asks about every assembly again. sj_mono_is_wanted: true if the latest reply
 * wants the function. sj_mono_mute_unwanted then stops the recording of all others by callbacks. */
void sj_mono_ask_again(void);
bool sj_mono_is_wanted(uint32_t function);
void sj_mono_mute_unwanted(void);

/* Asks about the image of an assembly. Returns the reply and writes the file's path to `*path`.
 * Returns NULL if the image was known before, or has no file. */
const sj_mono_reply *sj_mono_ask_about_image(void *image, const char **path);

/* Asks the recorder about an assembly. Returns false if it did not reply; then the caller asks
 * again the next time. Blocking. */
bool sj_mono_ask_assembly(const char *path, const uint8_t *id, uint32_t id_bytes, bool is_main,
                          sj_mono_assembly *assembly);

/* Asks about a method that no file lists. Writes 0 to `*function` if it is not recorded. Returns
 * false as sj_mono_ask_assembly does. Blocking. */
bool sj_mono_ask_method(const char *container, const char *name, uint32_t *function);

/* sj_mono_plan_code asks for a plan of the code of functions and has it hooked. sj_mono_set_hook
 * sets the function that hooks it. Blocking. */
void sj_mono_plan_code(const sj_mono_code *code);
void sj_mono_set_hook(sj_mono_hook *hook_generated);

/* sj_mono_set_compile_again sets an environment variable of the program, before main: the runtime
 * reads its options when it starts. sj_mono_restore_environment, called after that, restores it in
 * the C library's list, which may have moved meanwhile. */
void sj_mono_set_compile_again(void);
void sj_mono_restore_environment(void);

/* Makes the runtime count lines, if it can. Call it before main. */
void sj_mono_start_lines(bool is_launched);

/* Why lines are not counted. 0: they are, or the recorder has not asked. sj_mono_report_no_lines
 * reports the reason once. Blocking. */
extern sj_no_lines sj_mono_no_lines;
void sj_mono_report_no_lines(void);

/* sj_mono_hook_code hooks the code of functions in place and marks their methods as hooked;
 * `methods` may be NULL. Functions are by rising address. `marks` has `count` zeroed bytes. `runs`
 * is as in sj_mono_code. sj_mono_report_unhooked_code reports to the recorder that functions are
 * not hooked, and why (sj_skip). */
void sj_mono_hook_code(const sj_link_code_function *functions, void *const *methods, uint32_t count,
                       bool runs, uint8_t *marks);

void sj_mono_report_unhooked_code(const sj_link_code_function *functions, uint32_t count,
                                  uint32_t skip);

/* True if the code that is being compiled for a method stays as long as the runtime. Code of
 * dynamic methods and of other domains is freed, and its bytes may become another method. */
bool sj_mono_can_hook(void *method);

/* True if the code of one more method may be hooked in place without need of a rule. Each takes
 * some pages. */
bool sj_mono_may_hook_more(void);

/* Hooks the code of a method that was just compiled and does not run yet, if that was chosen for
 * it. */
void sj_mono_hook_compiled(void *method, const void *code, uint64_t bytes);

/* True if all values by which rules decide lie in registers. */
bool sj_mono_are_values_in_registers(void *method, const sj_mono_selection *selection);

/* Sets which values of a method are recorded if its code at `address` is hooked in place. Call it
 * before the code is hooked. */
void sj_mono_place_values(void *method, const sj_mono_selection *selection, uint64_t address);

/* Forgets a method that the runtime has freed. */
void sj_mono_forget_method(const void *method);

/* Returns what is wanted of a method that is being compiled. */
sj_mono_selection sj_mono_selection_of(void *method);

/* One value of a call, with its type from the method's signature. */
typedef struct sj_mono_value {
    uint32_t function;
    uint64_t stack; /* Stack field of the call's records. */
    uint8_t descriptor;
    uint8_t element; /* MonoTypeEnum of the value; for an enum, that of its integer. */
    bool is_byref;
    void *type;  /* MonoType* */
    void *place; /* Address of the argument's variable, or of the result. */
} sj_mono_value;

/* Asks the runtime for the type of a value. */
void sj_mono_find_type(sj_mono_value *value);

/* Records a value. Returns true if a rule wants the change `*due`. */
bool sj_mono_record_value(const sj_mono_value *value, sj_due_change *due);

/* Sets the target of a rule's change. Returns false if the target is not a number. */
bool sj_mono_set_value(const sj_due_change *due, void *type, void *place);

/* Returns the type of a declared parameter, counted from 1. Returns NULL if the method has fewer.
 */
void *sj_mono_parameter_type(void *signature, uint32_t number);

/* Records the wanted values of a call before its entry (`at_entry`) or before its exit. `context`
 * is Mono's call context. */
void sj_mono_record_values(void *method, const sj_mono_recipe *recipe, const uint64_t *context,
                           bool at_entry);

/* One value of a method. The runtime is asked once about it. */
typedef struct sj_mono_ingredient {
    void *type;
    uint8_t descriptor;
    uint8_t element;  /* MonoTypeEnum of the value; for an enum, that of its integer. */
    uint8_t argument; /* Index in a context's list of arguments. */
    bool is_byref;
    bool is_result;
    bool is_plain; /* True for a number of the wanted kind: no more has to be known. */
    bool is_text;  /* True for a string that is recorded as text. */
} sj_mono_ingredient;

/* Asks the runtime about one value of a method. Returns false if the method has no such value. */
bool sj_mono_find_value(void *signature, uint8_t descriptor, sj_mono_ingredient *value);

/* Records the value at `place`. Returns true if a rule wants the change `*due`. */
bool sj_mono_record_ingredient(const sj_mono_ingredient *wanted, uint32_t function, uint64_t stack,
                               void *place, sj_due_change *due);

/* How the values of a method are recorded. */
struct sj_mono_recipe {
    uint32_t function;
    uint64_t descriptors; /* The descriptors for which it was made. */
    bool measures_cpu;
    uint32_t count;
    sj_mono_ingredient values[SJ_VALUES_PER_FUNCTION];
};

/* sj_mono_find_recipe returns how the values of a method are recorded, or NULL if none is.
 * Thread-safe; takes no lock. sj_mono_set_wanted_values sets which values are wanted: one
 * sj_value_descriptor in each byte. */
const sj_mono_recipe *sj_mono_find_recipe(void *method, const sj_mono_method *entry);
void sj_mono_set_wanted_values(const sj_mono_method *entry, uint64_t descriptors);

/* True if a value of the method is recorded. */
bool sj_mono_has_values(const sj_mono_method *entry);

/* MonoTypeEnum (ECMA-335, II.23.1.16). */
enum {
    TYPE_BOOLEAN = 2,
    TYPE_CHAR = 3,
    TYPE_I1 = 4,
    TYPE_U1 = 5,
    TYPE_I2 = 6,
    TYPE_U2 = 7,
    TYPE_I4 = 8,
    TYPE_U4 = 9,
    TYPE_I8 = 10,
    TYPE_U8 = 11,
    TYPE_R4 = 12,
    TYPE_R8 = 13,
    TYPE_STRING = 14,
    TYPE_POINTER = 15,
    TYPE_VALUE = 17,
    TYPE_CLASS = 18,
    TYPE_ARRAY = 20,
    TYPE_GENERIC = 21,
    TYPE_I = 24,
    TYPE_U = 25,
    TYPE_OBJECT = 28,
    TYPE_VECTOR = 29
};

/* Each size has its own instruction: if bytes are stored one by one and loaded together, the
 * processor waits. */
#define SJ_MONO_READ_AS(type)                                                                      \
    {                                                                                              \
        type number;                                                                               \
        memcpy(&number, place, sizeof(number));                                                    \
        return (uint64_t)(int64_t)number;                                                          \
    }

static inline uint64_t sj_mono_read_number(int32_t type, const void *place)
{
    switch (type) {
    case TYPE_BOOLEAN:
    case TYPE_U1:
        SJ_MONO_READ_AS(uint8_t)
    case TYPE_I1:
        SJ_MONO_READ_AS(int8_t)
    case TYPE_CHAR:
    case TYPE_U2:
        SJ_MONO_READ_AS(uint16_t)
    case TYPE_I2:
        SJ_MONO_READ_AS(int16_t)
    case TYPE_I4:
        SJ_MONO_READ_AS(int32_t)
    case TYPE_U4:
    case TYPE_R4:
        SJ_MONO_READ_AS(uint32_t)
    default:
        SJ_MONO_READ_AS(uint64_t)
    }
}

/* Appends a string. For NULL it sets the note to SJ_VALUE_NULL. */
void sj_mono_describe_string(sj_value_text *text, void *string);

/* sj_mono_note_throw notes the exception that the calling thread throws; `stack` is the stack
 * pointer of the callback. sj_mono_record_thrown records which exception ends a call, before the
 * exit's record. It returns true if the exception may have been raised before the method reported
 * its entry, or after its exit. */
void sj_mono_note_throw(void *exception, uint64_t stack);
bool sj_mono_record_thrown(uint32_t function, uint64_t stack);

/* Appends the value at `place` as its type says: a number, a constant of an enum, an object's class
 * and identity, an array's length, or a structure's fields. Calls no code of the program. */
void sj_mono_describe(sj_value_text *text, void *type, const void *place);

/* True if sj_mono_describe_string does not call functions of the runtime any longer. */
bool sj_mono_reads_strings_directly(void);

/* Appends the name of a class with its namespace. */
void sj_mono_describe_class(sj_value_text *text, void *class);

/* Forgets the image of an assembly that is being unloaded. */
void sj_mono_forget_image(const void *image);

/* Returns the runtime's handle of us; NULL before sj_mono_start. */
void *sj_mono_profiler(void);

/* Protects the tables of this folder. Only slow paths take it. */
extern sj_owner_lock sj_mono_lock;

extern _Atomic uint32_t sj_mono_refused;
extern _Atomic uint32_t sj_mono_assembly_count;
extern _Atomic uint32_t sj_mono_method_count;

/* Records a plain number. Returns its bits. */
static inline uint64_t sj_mono_record_plain(const sj_mono_ingredient *wanted, uint32_t function,
                                            uint64_t stack, const void *place)
{
    const uint64_t bits = sj_value_narrow(sj_value_kind_of(wanted->descriptor),
                                          sj_mono_read_number(wanted->element, place));
    sj_recorder_put_value(sj_record_make_tag(SJ_RECORD_VALUE, function), stack, wanted->descriptor,
                          SJ_PART_VALUE, bits);
    return bits;
}

#endif

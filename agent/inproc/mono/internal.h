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
    uint32_t first_function; /* Function id of the method in row 1; 0 if no method is recorded. */
    uint32_t count;          /* Number of method definitions. */
    uint32_t value_count;    /* Number of methods that record values. */
    /* One bit per method definition, 1 if it is recorded; then the sj_link_method_values. Has
     * sj_mono_assembly_bytes; the caller unmaps it. */
    uint8_t *wanted;
    /* True if no file lists its methods: the agent then asks about each method by its name. */
    bool is_unreadable;
    bool has_lines; /* True if the agent has to report which instructions of its methods ran. */
} sj_mono_assembly;

/* Returns the size of the memory that `wanted` points to. */
static inline size_t sj_mono_assembly_bytes(uint32_t count, uint32_t value_count)
{
    return (count + 31) / 32 * 4 + value_count * sizeof(sj_link_method_values);
}

/* Code of functions, in ascending order of addresses. */
typedef struct sj_mono_code {
    sj_link_code head;
    const sj_link_code_function *functions;
    /* A memory file with the content that `head` describes. -1 if there is none; then the code can
     * be read at its addresses. */
    int file;
    /* True if a thread may be running the code. Then hooks are only prepared, and a tracer writes
     * them. */
    bool runs;
    uint8_t *marks; /* One byte per function, set to 1 if the function was hooked. */
} sj_mono_code;

/* Registers the agent as a profiler of the runtime. May be called again after sj_mono_stop. With
 * `is_attached`, the agent may be unloaded, so the callbacks are trampolines that stay in the
 * process (hooks/lasting.h). Returns SJ_ENOTFOUND if the process has no runtime, or if the runtime
 * lacks a function that the agent needs. Returns SJ_ENOMEM if out of memory. Not thread-safe. */
SJ_MUST_CHECK sj_status sj_mono_start(bool is_attached);

/* True if the process has a runtime that sj_mono_start cannot use. Writes to `*lacking` the first
 * function that the runtime lacks, and how the runtime reports the methods that it compiles. Runs
 * no code of the program. */
bool sj_mono_find_lacking(sj_link_no_methods *lacking);

/* Makes the agent patch the code of the first 12,000 selected methods that are compiled from now
 * on. Callbacks record all other selected methods. */
void sj_mono_prefer_in_place(void);

/* Calls `start` once, before a runtime that the program loads at run time initialises itself. Call
 * it after modules were loaded, under the loader's lock, until sj_mono_start succeeds. */
void sj_mono_watch_for_launch(void (*start)(void));

/* Makes the runtime count which instructions of methods run. The agent reports them before the
 * runtime shuts down. As a side effect, the runtime reads symbol files and shows lines in stack
 * traces. Call it after sj_mono_start of a launched program and before its main. Do not call it if
 * the runtime reads symbol files already: an assertion of the runtime would end the program.
 * Returns false if the runtime refuses. */
bool sj_mono_count_lines(void);

/* Prepares hooks of all methods that the runtime of an attached process compiled before. Call it
 * once after sj_mono_start. Returns false and does nothing if the calling thread does not belong to
 * the runtime. */
bool sj_mono_plan_compiled(void);

/* Asks the recorder about all assemblies again. Stops recording methods that are not selected now.
 * Prepares hooks of compiled methods that are newly selected. Call it after sj_mono_start. Returns
 * false and does nothing if the calling thread does not belong to the runtime. */
bool sj_mono_reselect(void);

/* Callbacks of the runtime, in the order of their registration. The filter is last: the runtime
 * uses the other callbacks for methods that the filter selects. */
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
    uint32_t count; /* 0 if it did not run. */
    const char *file;
    uint32_t line;
    uint32_t column;
} sj_mono_coverage;

/* Functions of the runtime (Mono's public headers), named after their results. */
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
    void *(*type_of_class)(void *class);
    void *(*element_class)(void *class);
    int32_t (*element_bytes)(void *class);
    void *(*element_place)(void *array, int32_t bytes, uintptr_t index);
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

/* Fills sj_mono_runtime. Returns NULL on success, else the name of a function that the process
 * lacks. */
const char *sj_mono_find_api(void);

/* A method that callbacks record, or whose code is patched. */
typedef struct sj_mono_method {
    _Atomic uint64_t method; /* MonoMethod*; 0 if the element is free. Written last. */
    _Atomic uint32_t function;
    _Atomic uint32_t state; /* An sj_mono_method_state. */
} sj_mono_method;

typedef enum sj_mono_method_state {
    SJ_MONO_NEVER_ENTERED = 0,
    SJ_MONO_WAS_ENTERED = 1,
    SJ_MONO_IS_PATCHED = 2,   /* Its code is patched, so callbacks do not record it. */
    SJ_MONO_TO_BE_PATCHED = 3 /* Its code is patched as soon as it is compiled. */
} sj_mono_method_state;

enum { SJ_MONO_METHODS_CAPACITY = 1 << 18 };

/* Hash table of methods by their MonoMethod*. */
extern sj_mono_method sj_mono_methods[SJ_MONO_METHODS_CAPACITY];

/* Returns the index at which the search for a method begins. */
static inline uint32_t sj_mono_place_of(uint64_t pointer)
{
    enum { BITS = 18 };
    _Static_assert(1 << BITS == SJ_MONO_METHODS_CAPACITY, "the hash has as many bits");
    return (uint32_t)((pointer >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BITS));
}

/* Returns the element of a method, or NULL. Thread-safe. Takes no lock. */
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

/* Sets the function id of a method. If the method had another id, resets its state: the runtime has
 * reused the address for another method. Returns false if the table is full. */
bool sj_mono_set_method(const void *method, uint32_t function);

/* Sets the state of a method to SJ_MONO_IS_PATCHED. */
void sj_mono_set_patched(const void *method);

typedef struct sj_mono_recipe sj_mono_recipe;

/* How the recorder wants a method to be recorded. */
typedef struct sj_mono_selection {
    uint32_t function; /* 0 if the method is not recorded. */
    /* One sj_value_descriptor, SJ_PLACE_CPU_ENTRY or SJ_PLACE_OWN_VALUES per byte, from the lowest
     * byte on. */
    uint64_t descriptors;
    bool has_lines; /* True if its assembly reports lines. */
    bool in_place;  /* True if its code has to be patched, because rules change its results. */
} sj_mono_selection;

/* The recorder's latest reply about an assembly that has a file. */
typedef struct sj_mono_reply {
    uint32_t first_function; /* 0 if no method is recorded, or if `is_unreadable`. */
    uint32_t count;
    bool is_unreadable;
    bool has_lines;
    const uint8_t *wanted;               /* One bit per method definition. */
    const sj_link_method_values *values; /* In the same memory, after the bits. */
    uint32_t value_count;
} sj_mono_reply;

/* Returns how to record the method definition in row `row`, counted from 1. */
sj_mono_selection sj_mono_selection_of_row(const sj_mono_reply *reply, uint32_t row);

/* Asks the recorder about an assembly that was just loaded, and hooks its precompiled code. */
void sj_mono_add_assembly(void *assembly);

/* Asks the recorder about the loaded assemblies with precompiled code, and prepares their hooks.
 * Does not ask the runtime, which would allocate: a thread that the tracer has stopped may be
 * inside the allocator. */
void sj_mono_hook_precompiled(void);

/* Asks the recorder about an assembly by the path of its file and the text of its module id.
 * Returns false if the recorder did not reply. */
bool sj_mono_ask_by_path(const char *path, const char *id, sj_mono_reply *reply);

/* Asks the recorder about every assembly again. */
void sj_mono_ask_again(void);

/* True if the latest reply selects the function. */
bool sj_mono_is_wanted(uint32_t function);

/* Stops callbacks from recording functions that are not selected by the latest replies. */
void sj_mono_mute_unwanted(void);

/* Asks the recorder about the image of an assembly. Returns the reply, and writes the path of its
 * file to `*path`. Returns NULL if the image was asked about before, has no file, or got no
 * reply. */
const sj_mono_reply *sj_mono_ask_about_image(void *image, const char **path);

/* Asks the recorder about an assembly. Returns false if the recorder did not reply; then the caller
 * asks again later. Blocks. */
bool sj_mono_ask_assembly(const char *path, const uint8_t *id, uint32_t id_bytes, bool is_main,
                          sj_mono_assembly *assembly);

/* Asks the recorder about a method that no file lists. Writes its function id, or 0 if it is not
 * recorded. Returns false if the recorder did not reply. Blocks. */
bool sj_mono_ask_method(const char *container, const char *name, uint32_t *function);

/* Asks the recorder for a patch plan of the code, and hooks the code by it. Blocks. */
void sj_mono_plan_code(const sj_mono_code *code);

/* Sets the function by which sj_mono_plan_code hooks code. */
void sj_mono_set_hook(sj_mono_hook *hook_generated);

/* Sets MONO_ENV_OPTIONS in the program's environment so that the runtime ignores precompiled code.
 * Does so only if the program itself is precompiled, or after sj_mono_want_precompiled. Call it
 * before main. */
void sj_mono_set_compile_again(void);

/* Restores MONO_ENV_OPTIONS in `environ` after the runtime has read it. The C library may have
 * copied the array meanwhile. */
void sj_mono_restore_environment(void);

/* Makes the runtime count lines. If that is not possible, sets sj_mono_no_lines to the reason. Call
 * it before main. */
void sj_mono_start_lines(bool is_launched);

/* Why lines are not counted. 0 if they are counted, or if the recorder has not asked for lines. */
extern sj_no_lines sj_mono_no_lines;

/* Reports sj_mono_no_lines to the recorder once. Blocks. */
void sj_mono_report_no_lines(void);

/* Patches the code of functions and marks their methods as patched; `methods` may be NULL.
 * `functions` are in ascending order of addresses. `marks` has `count` bytes, which are 0. For
 * `runs`, see sj_mono_code. */
void sj_mono_hook_code(const sj_link_code_function *functions, void *const *methods, uint32_t count,
                       bool runs, uint8_t *marks);

/* Reports to the recorder that functions are not hooked. `skip` is the reason (sj_skip). */
void sj_mono_report_unhooked_code(const sj_link_code_function *functions, uint32_t count,
                                  uint32_t skip);

/* True if the code that is being compiled for a method exists as long as the runtime. Code of
 * dynamic methods and of other domains is freed, and other code may get its address. */
bool sj_mono_can_hook(void *method);

/* True while fewer than 12,000 methods have been patched right after their compilation. Each of
 * them needs an element of the agent's table of modules. Only sj_mono_prefer_in_place obeys this
 * limit. */
bool sj_mono_may_hook_more(void);

/* Patches the code of a method that was just compiled and does not run yet, if its state asks for
 * that. */
void sj_mono_hook_compiled(void *method, const void *code, uint64_t bytes);

/* True if all selected values are in registers, or if the code need not be patched
 * (selection->in_place). Returns false if the method has no signature. */
bool sj_mono_are_values_in_registers(void *method, const sj_mono_selection *selection);

/* Sets which values of a method are recorded if its code at `address` is patched. Call it before
 * the code is patched. */
void sj_mono_place_values(void *method, const sj_mono_selection *selection, uint64_t address);

/* Stops recording a method that the runtime has freed. */
void sj_mono_forget_method(const void *method);

/* Returns how to record a method. May ask the recorder; then it blocks. */
sj_mono_selection sj_mono_selection_of(void *method);

/* One value of a call, with its type from the method's signature. */
typedef struct sj_mono_value {
    uint32_t function;
    uint64_t stack; /* Stack field of the call's records. */
    uint8_t descriptor;
    uint8_t element; /* MonoTypeEnum of the value; for an enum, of its integer type. */
    bool is_byref;
    void *type;  /* MonoType* */
    void *place; /* Address of the argument or of the result. */
} sj_mono_value;

/* Sets `element` and `is_byref` of a value from its type. */
void sj_mono_find_type(sj_mono_value *value);

/* Records a value. Returns true if a rule changes a value of the call, and writes that change to
 * `*due`. */
bool sj_mono_record_value(const sj_mono_value *value, sj_due_change *due);

/* Writes the number of a rule's change to `place`. Returns false if `type` is not a number. */
bool sj_mono_set_value(const sj_due_change *due, void *type, void *place);

/* Returns the type of the declared parameter `number`, counted from 1. Returns NULL if the method
 * has fewer parameters. */
void *sj_mono_parameter_type(void *signature, uint32_t number);

/* Records the selected values of a call before its entry (`at_entry`) or its exit. `context` is
 * Mono's call context. */
void sj_mono_record_values(void *method, const sj_mono_recipe *recipe, const uint64_t *context,
                           bool at_entry);

/* How one value of a method is recorded. It is found once per method. */
typedef struct sj_mono_ingredient {
    void *type;
    uint8_t descriptor;
    uint8_t element;  /* MonoTypeEnum of the value; for an enum, of its integer type. */
    uint8_t argument; /* Index in the argument list of a call context. */
    bool is_byref;
    bool is_result;
    bool is_plain; /* True if it is a number of the selected kind, recorded without conversion. */
    bool is_text;  /* True if it is a string that is recorded as text. */
} sj_mono_ingredient;

/* Finds how a value of a method is recorded. Returns false if the method has no such value. */
bool sj_mono_find_value(void *signature, uint8_t descriptor, sj_mono_ingredient *value);

/* Lists the descriptors of the values that a selection asks for. Values by the method's own types
 * (SJ_PLACE_OWN_VALUES) follow the named ones. Returns their number, at most
 * SJ_VALUES_PER_FUNCTION. */
uint32_t sj_mono_list_values(void *signature, uint64_t selected,
                             uint8_t descriptors[SJ_VALUES_PER_FUNCTION]);

/* True if a selection asks for the CPU time of calls. */
bool sj_mono_measures_cpu(uint64_t selected);

/* Records the value at `place`. Returns true if a rule changes a value of the call, and writes that
 * change to `*due`. */
bool sj_mono_record_ingredient(const sj_mono_ingredient *wanted, uint32_t function, uint64_t stack,
                               void *place, sj_due_change *due);

/* How the values of a method are recorded. */
struct sj_mono_recipe {
    uint32_t function;
    uint64_t descriptors; /* The descriptors of the selection. */
    bool measures_cpu;
    uint32_t count;
    sj_mono_ingredient values[SJ_VALUES_PER_FUNCTION];
};

/* Returns how the values of a method are recorded, or NULL if none is recorded. Thread-safe. Takes
 * no lock. */
const sj_mono_recipe *sj_mono_find_recipe(void *method, const sj_mono_method *entry);

/* Sets the selected values of a method: one sj_value_descriptor per byte. */
void sj_mono_set_wanted_values(const sj_mono_method *entry, uint64_t descriptors);

/* True if any value of the method is recorded. */
bool sj_mono_has_values(const sj_mono_method *entry);

/* MonoTypeEnum (ECMA-335, II.23.1.16). */
enum {
    TYPE_VOID = 1,
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
    TYPE_PARAMETER = 19, /* A type parameter of a generic class. In JIT code, it is a reference. */
    TYPE_ARRAY = 20,
    TYPE_GENERIC = 21,
    TYPE_I = 24,
    TYPE_U = 25,
    TYPE_OBJECT = 28,
    TYPE_VECTOR = 29,
    TYPE_METHOD_PARAMETER = 30 /* A type parameter of a generic method, also a reference. */
};

/* Loads a number by one instruction of its size. If single bytes were stored and then loaded
 * together, the processor would have to wait for the stores. */
#define SJ_MONO_READ_AS(type)                                                                      \
    {                                                                                              \
        type number;                                                                               \
        memcpy(&number, place, sizeof(number));                                                    \
        return (uint64_t)(int64_t)number;                                                          \
    }

/* Returns a number, sign-extended to 64 bits if its type is signed. */
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

/* Appends the characters of a string. For NULL, sets the note to SJ_VALUE_NULL. */
void sj_mono_describe_string(sj_value_text *text, void *string);

/* Stores the exception that the calling thread throws. `stack` is the stack pointer of the
 * callback. */
void sj_mono_note_throw(void *exception, uint64_t stack);

/* Records which exception ends a call. Call it before the exit is recorded. Returns true if the
 * exception may have been raised before the method's entry was recorded, or after its exit. */
bool sj_mono_record_thrown(uint32_t function, uint64_t stack);

/* Appends the value at `place` according to its type: a number, an enum constant, an object's class
 * and hash, an array's length, or a structure's fields. Calls no code of the program. */
void sj_mono_describe(sj_value_text *text, void *type, const void *place);

/* A field of an object or structure. `type` is NULL if the class has no such field. */
typedef struct sj_mono_field {
    void *type;
    uint32_t offset; /* In a structure, in bytes. */
} sj_mono_field;

/* Finds a field of instances by its name. */
sj_mono_field sj_mono_find_field(void *class, const char *name);

/* Appends a System.Decimal, DateTime or TimeSpan as text. Returns false and appends nothing if the
 * class is another one, or if its fields are not the expected ones. */
bool sj_mono_describe_known(sj_value_text *text, void *class, const void *place);

/* True if sj_mono_describe_string no longer calls functions of the runtime. */
bool sj_mono_reads_strings_directly(void);

/* Appends the name of a class with its namespace. */
void sj_mono_describe_class(sj_value_text *text, void *class);

/* Removes the image of an assembly that is being unloaded from the table. */
void sj_mono_forget_image(const void *image);

/* Returns the agent's profiler handle, or NULL before sj_mono_start. */
void *sj_mono_profiler(void);

/* Guards the tables of this folder. Only slow paths take this lock. */
extern sj_owner_lock sj_mono_lock;

/* sj_mono_refused counts methods and images that could not be stored or got no reply. The other two
 * counters count images and methods. */
extern _Atomic uint32_t sj_mono_refused;
extern _Atomic uint32_t sj_mono_assembly_count;
extern _Atomic uint32_t sj_mono_method_count;

/* Records the number at `place`. wanted->is_plain must be true. Returns the recorded bits. */
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

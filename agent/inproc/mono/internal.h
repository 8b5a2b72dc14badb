/* What the files of this room share. */
#ifndef SJ_AGENT_INPROC_MONO_INTERNAL_H
#define SJ_AGENT_INPROC_MONO_INTERNAL_H

#include "agent/inproc/mono/mono.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/internal.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/value_text.h"
#include "proto/block/value.h"

#include <stdatomic.h>
#include <string.h>

/* What the runtime calls, in the order in which they are registered: the filter last, so that what
 * it chooses has somewhere to call. */
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

/* MonoProfilerCoverageData: an instruction of a method. */
typedef struct sj_mono_coverage {
    void *method;
    uint32_t offset;
    uint32_t count; /* 0: it did not run */
    const char *file;
    uint32_t line;
    uint32_t column;
} sj_mono_coverage;

/* The runtime's functions (mono/metadata/profiler.h and others), by what they return. */
typedef struct sj_mono_api {
    void *(*profiler_create)(void *self);
    /* A callback's address, 0: none. */
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
                             void (*take)(void *self, const sj_mono_coverage *data));
    void (*set_coverage_filter)(void *profiler, uint32_t (*filter)(void *self, void *method));
    void (*set_shutdown_begin)(void *profiler, void (*callback)(void *self));
} sj_mono_api;

extern sj_mono_api sj_mono_runtime;

/* sj_mono_on_enter records the entry of a method; sj_arch_mono_enter goes on there. `context` is
 * Mono's call context, or NULL. */
void sj_mono_on_enter(void *ours, void *method, void *context);

/* sj_mono_find_api fills sj_mono_runtime; NULL, or the first function that the process lacks. */
const char *sj_mono_find_api(void);

/* A method that was compiled with calls of ours, or whose code is hooked in place. */
typedef struct sj_mono_method {
    _Atomic uint64_t method; /* MonoMethod*; 0: free; written last */
    _Atomic uint32_t function;
    _Atomic uint32_t state; /* sj_mono_method_state */
} sj_mono_method;

typedef enum sj_mono_method_state {
    SJ_MONO_NEVER_ENTERED = 0,
    SJ_MONO_WAS_ENTERED = 1,
    SJ_MONO_IS_PATCHED = 2,   /* its code is hooked in place: callbacks record nothing of it */
    SJ_MONO_TO_BE_PATCHED = 3 /* as soon as it is compiled */
} sj_mono_method_state;

enum { SJ_MONO_METHODS_ROOM = 1 << 18 };

extern sj_mono_method sj_mono_methods[SJ_MONO_METHODS_ROOM];

static inline uint32_t sj_mono_place_of(uint64_t pointer)
{
    enum { BITS = 18 };
    _Static_assert(1 << BITS == SJ_MONO_METHODS_ROOM, "the hash has as many bits");
    return (uint32_t)((pointer >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BITS));
}

/* sj_mono_find_method returns the entry of a method; NULL: it has none. Any thread, no lock. */
static inline sj_mono_method *sj_mono_find_method(const void *method)
{
    const uint64_t key = (uint64_t)(uintptr_t)method;
    for (uint32_t place = sj_mono_place_of(key);; place = (place + 1) % SJ_MONO_METHODS_ROOM) {
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

/* sj_mono_set_method says which function a method is from now on; a pointer that comes again is
 * another method. False: there is no room. */
bool sj_mono_set_method(const void *method, uint32_t function);

/* sj_mono_set_patched says that a method's code is hooked in place. */
void sj_mono_set_patched(const void *method);

typedef struct sj_mono_recipe sj_mono_recipe;

/* What is to be recorded of a method. */
typedef struct sj_mono_wish {
    uint32_t function;    /* 0: nothing */
    uint64_t descriptors; /* sj_value_descriptor of its values, or SJ_PLACE_CPU_ENTRY, one a byte,
                             lowest first */
    bool has_lines;       /* of its assembly */
    bool in_place;        /* rules decide what its calls return: its code is to be hooked */
} sj_mono_wish;

/* What is known of an assembly that has a file, as the recorder answered last. */
typedef struct sj_mono_answer {
    uint32_t first_function; /* 0: left alone, or named one by one */
    uint32_t count;
    bool is_unreadable;
    bool has_lines;
    const uint8_t *wanted;
    const sj_link_method_values *values; /* behind the bits */
    uint32_t value_count;
} sj_mono_answer;

/* sj_mono_wish_of_row is the wish of a method definition, by its row. */
sj_mono_wish sj_mono_wish_of_row(const sj_mono_answer *answer, uint32_t row);

/* sj_mono_learn_assembly asks about an assembly that has just been loaded, and has what of it was
 * compiled ahead of time hooked. */
void sj_mono_learn_assembly(void *assembly);

/* sj_mono_learn_precompiled does so for those that were compiled ahead of time and run already. The
 * runtime is not asked: it allocates, which a thread may be in that it has stopped. */
void sj_mono_learn_precompiled(void);

/* sj_mono_ask_by_path asks about an assembly by the path of its file and the text of its module
 * id; false: nobody answered. */
bool sj_mono_ask_by_path(const char *path, const char *id, sj_mono_answer *answer);

/* sj_mono_ask_anew asks again about every assembly. sj_mono_mute_unwanted then has callbacks record
 * no longer what is not wanted any more (sj_mono_is_wanted). */
void sj_mono_ask_anew(void);
bool sj_mono_is_wanted(uint32_t function);
void sj_mono_mute_unwanted(void);

/* sj_mono_learn_image asks about the image of an assembly; the answer, and the path of its file, if
 * it was not known before and has one. */
const sj_mono_answer *sj_mono_learn_image(void *image, const char **path);

/* sj_mono_plan_code asks for a plan, as the registrar has it. */
void sj_mono_plan_code(const sj_mono_code *code);

/* sj_mono_hook_code has code of functions hooked in place, and their methods (NULL: not known) set
 * as patched where that was done. Functions by rising address; `marks` has as many bytes, 0 at
 * first; `runs` as the registrar has it. sj_mono_refuse_code has the recorder tell that functions
 * are not hooked; `skip` (sj_skip) is why. */
void sj_mono_hook_code(const sj_link_code_function *functions, void *const *methods, uint32_t count,
                       bool runs, uint8_t *marks);

void sj_mono_refuse_code(const sj_link_code_function *functions, uint32_t count, uint32_t skip);

/* sj_mono_can_hook: code that is compiled now for a method stays as long as the runtime does. That
 * of dynamic methods and of other domains is freed, and its bytes become another method's. */
bool sj_mono_can_hook(void *method);

/* sj_mono_has_room_in_place: code of one method more can be hooked in place, beside that which
 * rules need. Each takes some pages. */
bool sj_mono_has_room_in_place(void);

/* sj_mono_hook_compiled hooks the code of a method that has just been compiled, and that nothing
 * runs yet, if that is what was chosen for it. */
void sj_mono_hook_compiled(void *method, const void *code, uint64_t bytes);

/* sj_mono_can_place: the values of a method by which rules decide lie in registers. */
bool sj_mono_can_place(void *method, const sj_mono_wish *wish);

/* sj_mono_place_values says which values of a method are recorded where its code, which begins at
 * `address`, is hooked in place; before it is. */
void sj_mono_place_values(void *method, const sj_mono_wish *wish, uint64_t address);

/* sj_mono_forget_method says that a method was freed. */
void sj_mono_forget_method(const void *method);

/* sj_mono_wish_of returns what is to be recorded of a method that is being compiled. */
sj_mono_wish sj_mono_wish_of(void *method);

/* Of the methods, by their places in the table: what they record besides their calls. */

/* One value, as its method's signature and a call have it. */
typedef struct sj_mono_value {
    uint32_t function;
    uint64_t stack; /* of the call's records */
    uint8_t descriptor;
    uint8_t element; /* MonoTypeEnum of what it is; of an enum, its integer's */
    bool is_byref;
    void *type;  /* MonoType* */
    void *place; /* where the argument's variable or the result lies */
} sj_mono_value;

/* sj_mono_learn_type asks the runtime what a value's type is. */
void sj_mono_learn_type(sj_mono_value *value);

/* sj_mono_record_value records a value; true: `*due` is to be done. */
bool sj_mono_record_value(const sj_mono_value *value, sj_due_change *due);

/* sj_mono_set_value sets what a rule's target is, if that is a number. */
bool sj_mono_set_value(const sj_due_change *due, void *type, void *place);

/* sj_mono_parameter_type returns the type of a declared parameter, from 1; NULL: there are fewer.
 */
void *sj_mono_parameter_type(void *signature, uint32_t number);

/* sj_mono_record_values records what is asked of a call of `method`, in front of its entry
 * (`at_entry`) or exit. `context` is Mono's call context. */
void sj_mono_record_values(void *method, const sj_mono_recipe *recipe, const uint64_t *context,
                           bool at_entry);

/* What the runtime says of one value of a method, asked once. */
typedef struct sj_mono_ingredient {
    void *type;
    uint8_t descriptor;
    uint8_t element;  /* MonoTypeEnum of what it is; of an enum, its integer's */
    uint8_t argument; /* place in a context's list */
    bool is_byref;
    bool is_result;
    bool is_plain; /* a number, of the kind that is asked for: nothing more has to be known */
    bool is_text;  /* a string that is recorded as one */
} sj_mono_ingredient;

/* sj_mono_learn_value asks the runtime about one value of a method; false: it has no such. */
bool sj_mono_learn_value(void *signature, uint8_t descriptor, sj_mono_ingredient *value);

/* sj_mono_record_ingredient records what lies at `place`; true: `*due` is to be done. */
bool sj_mono_record_ingredient(const sj_mono_ingredient *asked, uint32_t function, uint64_t stack,
                               void *place, sj_due_change *due);

/* How the values of a method are recorded. */
struct sj_mono_recipe {
    uint32_t function;
    uint64_t descriptors; /* that it was made for */
    bool measures_cpu;
    uint32_t count;
    sj_mono_ingredient values[SJ_VALUES_PER_FUNCTION];
};

/* sj_mono_find_recipe returns how the values of a method are recorded; NULL: none of them is. Any
 * thread, no lock. sj_mono_ask_values sets which those are (sj_value_descriptor, one a byte). */
const sj_mono_recipe *sj_mono_find_recipe(void *method, const sj_mono_method *entry);
void sj_mono_ask_values(const sj_mono_method *entry, uint64_t descriptors);

/* sj_mono_has_values: some value of a method is recorded. */
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

/* sj_mono_read_number reads a number of an element type, widened to 64 bits by its sign. */
/* Each size by an instruction of its own: bytes that are stored apart and loaded together make the
 * processor wait. */
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

/* sj_mono_describe_string appends a string, or makes the text that of none. */
void sj_mono_describe_string(sj_value_text *text, void *string);

/* sj_mono_note_throw notes which exception the calling thread throws; `stack` is the stack pointer
 * of the callback. sj_mono_record_thrown records which one ends a call, in front of its exit; true:
 * it is one that may have hit the call's frame before it told of its entry, or after its exit. */
void sj_mono_note_throw(void *exception, uint64_t stack);
bool sj_mono_record_thrown(uint32_t function, uint64_t stack);

/* sj_mono_describe appends what lies at `place` as its type has it: numbers, constants of enums,
 * the class and identity of objects, lengths of arrays, fields of structures. Calls nothing of the
 * program. */
void sj_mono_describe(sj_value_text *text, void *type, const void *place);

/* sj_mono_knows_strings: sj_mono_describe_string calls no function of the runtime any more. */
bool sj_mono_knows_strings(void);

/* sj_mono_describe_class appends the name of a class with its namespace. */
void sj_mono_describe_class(sj_value_text *text, void *class);

/* sj_mono_forget_image says that an assembly's image is being unloaded. */
void sj_mono_forget_image(const void *image);

void sj_mono_runtime_is_up(void);
void sj_mono_add_lines(const uint32_t *words, uint32_t count, bool is_last);

/* sj_mono_profiler is what the runtime knows us by; NULL before sj_mono_start. */
void *sj_mono_profiler(void);
void sj_mono_set_registrar(const sj_mono_registrar *registrar);

/* The room's lock, of the slow paths only. */
extern sj_owner_lock sj_mono_lock;

extern _Atomic uint32_t sj_mono_refused;
extern _Atomic uint32_t sj_mono_assembly_count;
extern _Atomic uint32_t sj_mono_method_count;

/* sj_mono_record_plain records a plain number, and returns it. */
static inline uint64_t sj_mono_record_plain(const sj_mono_ingredient *asked, uint32_t function,
                                            uint64_t stack, const void *place)
{
    const uint64_t bits = sj_value_narrow(sj_value_kind_of(asked->descriptor),
                                          sj_mono_read_number(asked->element, place));
    sj_recorder_put_value(sj_record_make_tag(SJ_RECORD_VALUE, function), stack, asked->descriptor,
                          SJ_PART_VALUE, bits);
    return bits;
}

#endif

/* Design notes
 *
 * Code that a program asked for while an object lived is called without a look-up when the object
 * has been freed: no class is read on the way. So the program's own methods are entered through
 * doors, which compare the receiver's class first. What the runtime hands out is the door; programs
 * that compare code see the same address everywhere.
 * Doors and their words lie in one mapping that stays, like those of doors.c, and need nothing of
 * the agent. The doors of a page are written together, since a page with a door that is in use can
 * never be written again; all of its methods have their receiver in the same register. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/inproc/heap_guard/named_mapping.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

#define METHODS_NAME "sojourn-methods"
#define METHODS_MAGIC UINT64_C(0x3144484d4a535353)

enum {
    PAGE = 4096,
    IN_PAGE = PAGE / SJ_METHOD_DOOR_BYTES,
    PAGES = 256,
    DATA_BYTES = PAGE * (1 + PAGES),
    CLASSES_MAX = 1 << 16,
    LISTS_MAX = 1024,
    IN_REGISTERS_BYTES = 16
};

/* The first page of the mapping; its words follow, a page for each page of doors. */
typedef struct method_doors {
    sj_method_words words;
    uint64_t magic;
    uint32_t page_count;
    uint32_t used[SJ_RECEIVERS]; /* words of the last page of that kind */
    uint32_t last[SJ_RECEIVERS]; /* 1 + that page; 0: none */
    uint8_t kinds[PAGES];
} method_doors;

/* A word's place and its door's are equally far into the two halves of the mapping. */
typedef struct method_word {
    uint64_t target; /* 0: free */
    const void *selector;
    uint64_t unused[2];
} method_word;

_Static_assert(sizeof(method_doors) <= PAGE, "the head fits its page");
_Static_assert(sizeof(method_word) == SJ_METHOD_DOOR_BYTES,
               "words and doors are equally far apart");

/* As compilers lay them out, for __objc_exec_class. */
typedef struct gcc_symbols {
    unsigned long selector_count;
    const void *selectors;
    unsigned short class_count;
    unsigned short category_count;
    const void *definitions[];
} gcc_symbols;

typedef struct gcc_module {
    unsigned long version;
    unsigned long size;
    const char *name;
    const gcc_symbols *symbols;
} gcc_module;

typedef struct gcc_category {
    const char *name;
    const char *class_name;
} gcc_category;

static method_doors *doors;
static sj_owner_lock lock; /* guards the doors, and the next: */
static uint32_t next_guess;

static uint8_t *code_of(uint32_t page)
{
    return (uint8_t *)doors + DATA_BYTES + (size_t)(1 + page) * PAGE;
}

static method_word *word_at(uint32_t index)
{
    return (method_word *)(void *)((uint8_t *)doors + PAGE) + index;
}

static uint64_t door_at(uint32_t index)
{
    return (uint64_t)(uintptr_t)code_of(0) + (uint64_t)index * SJ_METHOD_DOOR_BYTES;
}

/* 1 + the index of a door; 0: the code is none. */
static uint32_t door_of(uint64_t code)
{
    const uint64_t first = door_at(0);
    const uint64_t end = door_at(doors->page_count * IN_PAGE);
    return code >= first && code < end ? (uint32_t)((code - first) / SJ_METHOD_DOOR_BYTES) + 1 : 0;
}

static method_doors *make_doors(void)
{
    method_doors *made = sj_named_mapping_make(METHODS_NAME, DATA_BYTES, DATA_BYTES);
    if (made != NULL && !sj_arch_method_doors_begin((uint8_t *)made + DATA_BYTES, &made->words)) {
        (void)sj_sys_unmap(made, 2 * (size_t)DATA_BYTES);
        return NULL;
    }
    if (made == NULL ||
        sj_sys_protect((uint8_t *)made + DATA_BYTES, PAGE, PROT_READ | PROT_EXEC) != 0) {
        return NULL;
    }
    made->words.zombie = (uint64_t)(uintptr_t)&sj_doors_now->zombie;
    made->words.answer = sj_door(SJ_DOOR_ANSWER);
    made->magic = METHODS_MAGIC;
    return made;
}

static bool open_mapping(void)
{
    if (doors == NULL) {
        method_doors *found = sj_named_mapping_find(METHODS_NAME);
        doors = found != NULL && found->magic == METHODS_MAGIC ? found : make_doors();
    }
    return doors != NULL;
}

static bool open_page(sj_receiver kind)
{
    const uint32_t page = doors->page_count;
    if (page == PAGES) {
        return false;
    }
    sj_arch_method_doors_write(code_of(page), IN_PAGE, kind, (const uint8_t *)doors + DATA_BYTES,
                               &doors->words);
    if (sj_sys_protect(code_of(page), PAGE, PROT_READ | PROT_EXEC) != 0) {
        return false;
    }
    doors->kinds[page] = (uint8_t)kind;
    doors->last[kind] = page + 1;
    doors->used[kind] = 0;
    doors->page_count = page + 1;
    return true;
}

/* The door that an earlier agent made for a method; 0: none. They come in the same order again. */
static uint64_t find_door(uint64_t target, const void *selector, sj_receiver kind)
{
    const uint32_t count = doors->page_count * IN_PAGE;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = (next_guess + i) % count;
        const method_word *word = word_at(index);
        if (word->target == target && word->selector == selector &&
            doors->kinds[index / IN_PAGE] == kind) {
            next_guess = index + 1;
            return door_at(index);
        }
    }
    return 0;
}

/* 0: there is no room. */
static uint64_t make_door(uint64_t target, const void *selector, sj_receiver kind)
{
    if ((doors->last[kind] == 0 || doors->used[kind] == IN_PAGE) && !open_page(kind)) {
        return 0;
    }
    const uint32_t index = (doors->last[kind] - 1) * IN_PAGE + doors->used[kind]++;
    word_at(index)->selector = selector;
    word_at(index)->target = target;
    return door_at(index);
}

/* Results in memory: its address comes first, then the receiver. */
static sj_receiver receiver_of(const char *types)
{
    const char *type = types != NULL ? sj_objc_gcc.skip_qualifiers(types) : "";
    const bool is_large =
        (*type == '{' || *type == '(') && sj_objc_gcc.size_of_type(type) > IN_REGISTERS_BYTES;
    return is_large ? SJ_RECEIVER_SECOND : SJ_RECEIVER_FIRST;
}

static bool is_own_code(uint64_t address)
{
    bool is_known = false;
    return !sj_objects_is_system(address, &is_known) && is_known;
}

static void enter_by_door(const sj_gcc_class *class, sj_gcc_method *method, bool may_be_known)
{
    if (door_of(method->code) != 0 || !is_own_code(method->code)) {
        return;
    }
    const sj_receiver kind = receiver_of(method->types);
    uint64_t door = may_be_known ? find_door(method->code, method->selector, kind) : 0;
    door = door != 0 ? door : make_door(method->code, method->selector, kind);
    if (door != 0) {
        sj_objc_set_code(class, method, door);
    } else {
        sj_objects_count(methods_without_door, 1);
    }
}

static void leave_by_door(const sj_gcc_class *class, sj_gcc_method *method, bool may_be_known)
{
    const uint32_t door = door_of(method->code);
    (void)may_be_known;
    if (door != 0) {
        sj_objc_set_code(class, method, word_at(door - 1)->target);
    }
}

typedef void (*method_change)(const sj_gcc_class *class, sj_gcc_method *method, bool may_be_known);

static void change_methods(const sj_gcc_class *class, method_change change, bool may_be_known)
{
    sj_gcc_methods *list = class->methods;
    for (uint32_t i = 0; list != NULL && i < LISTS_MAX; i++, list = list->next) {
        for (int32_t j = 0; j < list->count; j++) {
            change(class, &list->methods[j], may_be_known);
        }
    }
}

static void change_all(method_change change)
{
    const size_t bytes = CLASSES_MAX * sizeof(const sj_gcc_class *);
    const sj_gcc_class **classes = sj_sys_map(NULL, bytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sj_sys_failed(classes)) {
        return;
    }
    const int count = sj_objc_gcc.list_classes(classes, CLASSES_MAX);
    for (int i = 0; i < count && i < CLASSES_MAX; i++) {
        change_methods(classes[i], change, true);
    }
    (void)sj_sys_unmap(classes, bytes);
}

void sj_methods_begin(void)
{
    if (sj_owner_lock_take(&lock)) {
        if (open_mapping()) {
            change_all(enter_by_door);
        }
        sj_owner_lock_free(&lock);
    }
}

void sj_methods_follow(const void *module)
{
    const gcc_symbols *symbols = ((const gcc_module *)module)->symbols;
    if (doors == NULL || symbols == NULL || !sj_owner_lock_take(&lock)) {
        return;
    }
    for (uint32_t i = 0; i < symbols->class_count; i++) {
        change_methods(symbols->definitions[i], enter_by_door, false);
    }
    for (uint32_t i = 0; i < symbols->category_count; i++) {
        const gcc_category *category = symbols->definitions[symbols->class_count + i];
        const sj_gcc_class *class = sj_objc_gcc.look_up_class(category->class_name);
        if (class != NULL) {
            change_methods(class, enter_by_door, false);
        }
    }
    sj_owner_lock_free(&lock);
}

void sj_methods_end(void)
{
    if (doors != NULL && sj_owner_lock_take(&lock)) {
        change_all(leave_by_door);
        sj_owner_lock_free(&lock);
    }
    doors = NULL;
}

void sj_methods_after_fork(void)
{
    atomic_store(&lock, 0);
}

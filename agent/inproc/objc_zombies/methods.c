/* Design notes
 *
 * A program may look up the code of a method while an object exists, and call it after the object
 * was freed. Such a call does not read the object's class. So trampolines that check the receiver's
 * class replace the program's own methods. The runtime returns the trampoline's address everywhere,
 * so comparisons of addresses still work.
 *
 * Trampolines and their words are in one mapping that stays when the agent is unloaded. They do not
 * need the agent. All trampolines of a page are written at once, because a page with a trampoline
 * in use must not be written again. They all expect the receiver in the same register. */
#include "agent/inproc/objc_zombies/internal.h"

#include "agent/abi/page.h"
#include "agent/inproc/heap_guard/named_mapping.h"
#include "agent/inproc/recorder/owner_lock.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

#define METHODS_NAME "sojourn-methods"
#define METHODS_MAGIC UINT64_C(0x3144484d4a535353)

enum {
    PAGE = SJ_PAGE_MOST_BYTES,
    PER_PAGE = PAGE / SJ_METHOD_TRAMPOLINE_BYTES,
    PAGES = (1 << 20) / PAGE,
    DATA_BYTES = PAGE * (1 + PAGES),
    CLASSES_MAX = 1 << 16,
    LISTS_MAX = 1024,
    IN_REGISTERS_BYTES = 16
};

/* The first page of the mapping. Pages of words follow, one for each page of trampolines. Arrays by
 * sj_receiver are about the trampolines of that kind. */
typedef struct method_trampolines {
    sj_method_words words;
    uint64_t magic;
    uint32_t page_count;
    uint32_t used[SJ_RECEIVERS]; /* Number of used words of the last page. */
    uint32_t last[SJ_RECEIVERS]; /* 1 + the index of the last page, or 0. */
    uint8_t kinds[PAGES];        /* The sj_receiver of each page. */
} method_trampolines;

/* Data of a trampoline. Its offset in the first half of the mapping equals the trampoline's
 * offset in the second half. */
typedef struct method_word {
    uint64_t target; /* The method's code; 0 if the trampoline is not used. */
    const void *selector;
    uint64_t unused[2];
} method_word;

_Static_assert(sizeof(method_trampolines) <= PAGE, "the head fits its page");
_Static_assert(sizeof(method_word) == SJ_METHOD_TRAMPOLINE_BYTES,
               "words and trampolines are equally far apart");

/* The structures that compilers emit for __objc_exec_class. */
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

static method_trampolines *mapping;
static sj_owner_lock lock; /* Guards the trampolines and next_guess. */
static uint32_t next_guess;

static uint8_t *code_of(uint32_t page)
{
    return (uint8_t *)mapping + DATA_BYTES + (size_t)(1 + page) * PAGE;
}

static method_word *word_at(uint32_t index)
{
    return (method_word *)(void *)((uint8_t *)mapping + PAGE) + index;
}

static uint64_t trampoline_at(uint32_t index)
{
    return (uint64_t)(uintptr_t)code_of(0) + (uint64_t)index * SJ_METHOD_TRAMPOLINE_BYTES;
}

/* Returns 1 + the index of the trampoline at `code`, or 0 if `code` is not a trampoline. */
static uint32_t trampoline_number(uint64_t code)
{
    const uint64_t first = trampoline_at(0);
    const uint64_t end = trampoline_at(mapping->page_count * PER_PAGE);
    return code >= first && code < end ? (uint32_t)((code - first) / SJ_METHOD_TRAMPOLINE_BYTES) + 1
                                       : 0;
}

static method_trampolines *create_mapping(void)
{
    method_trampolines *created = sj_named_mapping_new(METHODS_NAME, DATA_BYTES, DATA_BYTES);
    if (created == NULL) {
        return NULL;
    }
    if (!sj_arch_method_trampolines_begin((uint8_t *)created + DATA_BYTES, &created->words) ||
        sj_sys_protect((uint8_t *)created + DATA_BYTES, PAGE, PROT_READ | PROT_EXEC) != 0) {
        (void)sj_sys_unmap(created, 2 * (size_t)DATA_BYTES);
        return NULL;
    }
    created->words.zombie = (uint64_t)(uintptr_t)&sj_objc_trampolines_now->zombie;
    created->words.handler = sj_objc_trampoline_address(SJ_TRAMPOLINE_FREED_MESSAGE);
    created->magic = METHODS_MAGIC;
    return created;
}

static bool open_mapping(void)
{
    if (mapping == NULL) {
        method_trampolines *found = sj_named_mapping_find(METHODS_NAME);
        mapping = found != NULL && found->magic == METHODS_MAGIC ? found : create_mapping();
    }
    return mapping != NULL;
}

static bool write_page(sj_receiver kind)
{
    const uint32_t page = mapping->page_count;
    if (page == PAGES) {
        return false;
    }
    sj_arch_method_trampolines_write(code_of(page), PER_PAGE, kind,
                                     (const uint8_t *)mapping + DATA_BYTES, &mapping->words);
    if (sj_sys_protect(code_of(page), PAGE, PROT_READ | PROT_EXEC) != 0) {
        return false;
    }
    mapping->kinds[page] = (uint8_t)kind;
    mapping->last[kind] = page + 1;
    mapping->used[kind] = 0;
    mapping->page_count = page + 1;
    return true;
}

/* Returns the trampoline that an earlier agent created for a method, or 0. Agents list methods in
 * the same order, so the search begins after the trampoline found last. */
static uint64_t find_trampoline(uint64_t target, const void *selector, sj_receiver kind)
{
    const uint32_t count = mapping->page_count * PER_PAGE;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = (next_guess + i) % count;
        const method_word *word = word_at(index);
        if (word->target == target && word->selector == selector &&
            mapping->kinds[index / PER_PAGE] == kind) {
            next_guess = index + 1;
            return trampoline_at(index);
        }
    }
    return 0;
}

/* Returns a new trampoline, or 0 if all are used. */
static uint64_t add_trampoline(uint64_t target, const void *selector, sj_receiver kind)
{
    if ((mapping->last[kind] == 0 || mapping->used[kind] == PER_PAGE) && !write_page(kind)) {
        return 0;
    }
    const uint32_t index = (mapping->last[kind] - 1) * PER_PAGE + mapping->used[kind]++;
    word_at(index)->selector = selector;
    word_at(index)->target = target;
    return trampoline_at(index);
}

/* Returns which argument is the receiver. It is the second one if the result is in memory, because
 * the address of the result comes first. */
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

/* Replaces the code of one of the program's own methods by a trampoline. `may_be_known` is true if
 * an earlier agent may have created the trampoline. */
static void use_trampoline(const sj_gcc_class *class, sj_gcc_method *method, bool may_be_known)
{
    if (trampoline_number(method->code) != 0 || !is_own_code(method->code)) {
        return;
    }
    const sj_receiver kind = receiver_of(method->types);
    uint64_t trampoline = may_be_known ? find_trampoline(method->code, method->selector, kind) : 0;
    trampoline =
        trampoline != 0 ? trampoline : add_trampoline(method->code, method->selector, kind);
    if (trampoline != 0) {
        sj_objc_set_code(class, method, trampoline);
    } else {
        sj_objects_count(methods_without_trampoline, 1);
    }
}

static void restore_method(const sj_gcc_class *class, sj_gcc_method *method, bool may_be_known)
{
    const uint32_t trampoline = trampoline_number(method->code);
    (void)may_be_known;
    if (trampoline != 0) {
        sj_objc_set_code(class, method, word_at(trampoline - 1)->target);
    }
}

typedef void (*method_change)(const sj_gcc_class *class, sj_gcc_method *method, bool may_be_known);

static void change_methods_of_class(const sj_gcc_class *class, method_change change,
                                    bool may_be_known)
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
        change_methods_of_class(classes[i], change, true);
    }
    (void)sj_sys_unmap(classes, bytes);
}

void sj_own_methods_begin(void)
{
    if (sj_owner_lock_acquire(&lock)) {
        if (open_mapping()) {
            change_all(use_trampoline);
        }
        sj_owner_lock_free(&lock);
    }
}

/* Replaces the code of the methods of the module's classes and categories by trampolines. The
 * caller holds the lock. */
static void change_methods_of_module(const gcc_symbols *symbols)
{
    for (uint32_t i = 0; i < symbols->class_count; i++) {
        change_methods_of_class(symbols->definitions[i], use_trampoline, false);
    }
    for (uint32_t i = 0; i < symbols->category_count; i++) {
        const gcc_category *category = symbols->definitions[symbols->class_count + i];
        const sj_gcc_class *class = sj_objc_gcc.look_up_class(category->class_name);
        if (class != NULL) {
            change_methods_of_class(class, use_trampoline, false);
        }
    }
}

void sj_own_methods_add_module(const void *module)
{
    const gcc_symbols *symbols = ((const gcc_module *)module)->symbols;
    if (symbols == NULL || !sj_owner_lock_acquire(&lock)) {
        return;
    }
    if (mapping != NULL) {
        change_methods_of_module(symbols);
    }
    sj_owner_lock_free(&lock);
}

void sj_own_methods_end(void)
{
    if (!sj_owner_lock_acquire(&lock)) {
        return;
    }
    if (mapping != NULL) {
        change_all(restore_method);
        mapping = NULL;
    }
    sj_owner_lock_free(&lock);
}

void sj_own_methods_after_fork(void)
{
    atomic_store(&lock, 0);
}

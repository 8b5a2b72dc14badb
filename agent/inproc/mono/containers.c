/* Design notes
 *
 * Images are few: a list, searched from the newest on, with the last one found in front. The
 * recorder is asked without our lock, since a thread that holds a lock of the runtime may wait for
 * ours; two threads that ask about one image get the same answer. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum {
    IMAGES_MAX = 4096,
    TOKEN_TABLE = 0x06, /* of method definitions */
    TOKEN_BITS = 24,
    NAMED_MAX = 20000, /* methods that no file lists: a module of the session each */
    NAMED_ROOM = 1 << 15,
    NAME_BYTES = 1024,
    ID_BYTES = 16
};

typedef struct image_entry {
    const void *_Atomic image; /* NULL: unloaded, or its method definitions changed */
    uint32_t first_function;   /* 0: left alone, or named one by one */
    uint32_t count;
    bool is_unreadable;
    bool has_lines;
    uint8_t *wanted;
    const sj_link_method_values *values; /* behind the bits */
    uint32_t value_count;
} image_entry;

static image_entry images[IMAGES_MAX];
static _Atomic uint32_t image_count;
static _Atomic uint32_t named_count;
static const sj_mono_registrar *ask;

_Atomic uint32_t sj_mono_assembly_count;

void sj_mono_runtime_is_up(void)
{
    ask->runtime_is_up();
}

void sj_mono_add_lines(const uint32_t *words, uint32_t count, bool is_last)
{
    ask->add_lines(words, count, is_last);
}

void sj_mono_plan_code(int file, const sj_link_code *code, uint64_t low, uint64_t high, bool runs,
                       uint8_t *marks)
{
    ask->plan_code(file, code, low, high, runs, marks);
}

void sj_mono_set_registrar(const sj_mono_registrar *registrar)
{
    ask = registrar;
}

static const image_entry *find_image(const void *image)
{
    /* Pairs with the release store in keep_image. */
    for (uint32_t i = atomic_load_explicit(&image_count, memory_order_acquire); i-- > 0;) {
        if (atomic_load_explicit(&images[i].image, memory_order_relaxed) == image) {
            return &images[i];
        }
    }
    return NULL;
}

void sj_mono_forget_image(const void *image)
{
    for (uint32_t i = atomic_load(&image_count); i-- > 0;) {
        if (atomic_load(&images[i].image) == image) {
            atomic_store(&images[i].image, NULL);
        }
    }
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    const char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The text of a GUID has its first three fields as numbers; the file has them low byte first. */
static uint32_t parse_id(const char *text, uint8_t id[ID_BYTES])
{
    static const uint8_t order[ID_BYTES] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    uint32_t used = 0;
    while (text != NULL && text[0] != '\0' && used < ID_BYTES) {
        if (text[0] == '-') {
            text++;
            continue;
        }
        const int high = hex_digit(text[0]);
        const int low = high >= 0 ? hex_digit(text[1]) : -1;
        if (low < 0) {
            return 0;
        }
        id[order[used++]] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return used == ID_BYTES ? ID_BYTES : 0;
}

static const image_entry *keep_image(const void *image, const sj_mono_assembly *answer)
{
    const image_entry *known = find_image(image);
    const uint32_t place = atomic_load(&image_count);
    if (known != NULL || place == IMAGES_MAX) {
        return known;
    }
    images[place].first_function = answer->first_function;
    images[place].count = answer->count;
    images[place].is_unreadable = answer->is_unreadable;
    images[place].has_lines = answer->has_lines;
    images[place].wanted = answer->wanted;
    images[place].value_count = answer->value_count;
    images[place].values =
        (const sj_link_method_values *)(const void *)(answer->wanted +
                                                      (answer->count + 31) / 32 * 4);
    atomic_store(&images[place].image, image);
    atomic_store_explicit(&image_count, place + 1, memory_order_release);
    atomic_fetch_add(&sj_mono_assembly_count, 1);
    return &images[place];
}

static bool is_main(void *image)
{
    const void *main_assembly = sj_mono_runtime.main_assembly();
    return main_assembly != NULL ? sj_mono_runtime.image_assembly(image) == main_assembly
                                 : sj_mono_runtime.image_entry_point(image) != 0;
}

/* Asks about an image that was not met before; NULL: nobody answered, or there is no room. */
static const image_entry *learn_image(void *image)
{
    uint8_t id[ID_BYTES];
    sj_mono_assembly answer = {0};
    const char *path = sj_mono_runtime.image_filename(image);
    const uint32_t id_bytes = parse_id(sj_mono_runtime.image_guid(image), id);
    const bool has_file =
        sj_mono_runtime.image_is_dynamic(image) == 0 && path != NULL && path[0] == '/';
    if (!has_file) {
        answer.is_unreadable = true;
    } else if (!ask->add_assembly(path, id, id_bytes, is_main(image), &answer)) {
        return NULL;
    }
    const image_entry *kept = NULL;
    if (sj_owner_lock_take(&sj_mono_lock)) {
        kept = keep_image(image, &answer);
        sj_owner_lock_free(&sj_mono_lock);
    }
    if (answer.wanted != NULL && (kept == NULL || kept->wanted != answer.wanted)) {
        (void)sj_sys_unmap(answer.wanted, /* another thread was first */
                           sj_mono_assembly_bytes(answer.count, answer.value_count));
    }
    return kept;
}

/* "(wrapper dynamic-method) object:Name (int)" or "Class:Name (int)", without blanks that the names
 * in files do not have. False: it is another kind of wrapper, which is no method of the program. */
static bool take_name(const char *full, char name[NAME_BYTES])
{
    static const char dynamic[] = "(wrapper dynamic-method) ";
    uint32_t used = 0;
    if (full[0] == '(') {
        if (strncmp(full, dynamic, sizeof(dynamic) - 1) != 0) {
            return false;
        }
        full += sizeof(dynamic) - 1;
    }
    for (; *full != '\0' && used < NAME_BYTES - 1; full++) {
        if (!(full[0] == ' ' && full[1] == '(')) {
            const unsigned char byte = (unsigned char)*full;
            name[used++] = byte < 0x20 || byte == 0x7f ? '?' : *full;
        }
    }
    name[used] = '\0';
    return used != 0;
}

/* What is known of methods by their names: memory of a freed one may be another's at once. */
typedef struct named_method {
    _Atomic uint64_t identity; /* hash of container and name; 0: free; written last */
    uint32_t function;         /* 0: it is not recorded */
} named_method;

static named_method named[NAMED_ROOM];

static uint64_t identity_of(const char *container, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *container != '\0'; container++) {
        hash = (hash ^ (uint8_t)*container) * UINT64_C(0x100000001b3);
    }
    hash = (hash ^ 0xff) * UINT64_C(0x100000001b3); /* in no name */
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    }
    return hash != 0 ? hash : 1;
}

/* The entry of an identity, or the free one where it belongs: the table is never full. */
static named_method *find_named(uint64_t identity)
{
    uint64_t place = identity ^ identity >> 32;
    for (;; place++) {
        named_method *entry = &named[place % NAMED_ROOM];
        /* Pairs with the release store in keep_named. */
        const uint64_t held = atomic_load_explicit(&entry->identity, memory_order_acquire);
        if (held == identity || held == 0) {
            return entry;
        }
    }
}

static void keep_named(uint64_t identity, uint32_t function)
{
    if (!sj_owner_lock_take(&sj_mono_lock)) {
        return;
    }
    named_method *entry = find_named(identity);
    if (atomic_load(&entry->identity) == 0 && atomic_load(&named_count) < NAMED_MAX) {
        atomic_fetch_add(&named_count, 1);
        entry->function = function;
        atomic_store_explicit(&entry->identity, identity, memory_order_release);
    }
    sj_owner_lock_free(&sj_mono_lock);
}

/* A method that no file lists is asked about once by its name, which is read each time that it is
 * compiled or looked at. */
static uint32_t name_method(void *method, void *image)
{
    char name[NAME_BYTES];
    uint32_t function = 0;
    char *full = sj_mono_runtime.method_full_name(method, 1);
    const bool is_method = full != NULL && take_name(full, name);
    sj_mono_runtime.free(full);
    if (!is_method) {
        return 0;
    }
    const char *container = sj_mono_runtime.image_name(image);
    container = container != NULL && container[0] != '\0' ? container : "?";
    const uint64_t identity = identity_of(container, name);
    const named_method *known = find_named(identity);
    if (atomic_load(&known->identity) == identity) {
        return known->function;
    }
    if (atomic_load(&named_count) >= NAMED_MAX || !ask->add_method(container, name, &function)) {
        atomic_fetch_add(&sj_mono_refused, 1);
        return 0;
    }
    keep_named(identity, function);
    return function;
}

/* What is recorded besides the calls of a method. */
static void find_values(const image_entry *entry, uint32_t token, sj_mono_wish *wish)
{
    uint32_t low = 0;
    uint32_t high = entry->value_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (entry->values[middle].token < token) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < entry->value_count && entry->values[low].token == token) {
        memcpy(&wish->descriptors, entry->values[low].descriptors, sizeof(wish->descriptors));
        wish->in_place = entry->values[low].in_place != 0;
    }
}

sj_mono_wish sj_mono_wish_of(void *method)
{
    const uint32_t token = sj_mono_runtime.method_token(method);
    const uint32_t row = token & ((1U << TOKEN_BITS) - 1);
    void *image = sj_mono_runtime.class_image(sj_mono_runtime.method_class(method));
    if (token >> TOKEN_BITS != TOKEN_TABLE || row == 0) {
        return (sj_mono_wish){.function = name_method(method, image)};
    }
    const image_entry *entry = find_image(image);
    if (entry == NULL) {
        entry = learn_image(image);
    }
    if (entry == NULL) {
        atomic_fetch_add(&sj_mono_refused, 1);
        return (sj_mono_wish){0};
    }
    if (entry->is_unreadable) {
        return (sj_mono_wish){.function = name_method(method, image)};
    }
    const bool is_wanted = entry->first_function != 0 && row <= entry->count &&
                           (entry->wanted[(row - 1) / 8] >> (row - 1) % 8 & 1) != 0;
    if (!is_wanted) {
        return (sj_mono_wish){0};
    }
    sj_mono_wish wish = {.function = entry->first_function + row - 1,
                         .has_lines = entry->has_lines};
    find_values(entry, row, &wish);
    return wish;
}

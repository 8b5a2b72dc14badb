/* Design notes
 *
 * A program has few images, so they are in an array that is searched from the newest to the oldest.
 * A thread does not hold our lock while it asks the recorder, because a thread that holds a lock of
 * the runtime may wait for ours. If two threads ask about the same image, they get the same reply.
 */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/recorder/sys.h"
#include "proto/base/bisect.h"

#include <string.h>

enum {
    IMAGES_MAX = 4096,
    REPLIES_MAX = 4 * IMAGES_MAX,
    PATHS_BYTES = 512 * 1024,
    TOKEN_TABLE = 0x06, /* Table of method definitions. */
    TOKEN_BITS = 24,
    NAMED_MAX = 20000, /* Maximum of methods that no file lists: each is a module of the session. */
    NAMED_CAPACITY = 1 << 15,
    NAME_BYTES = 1024,
    ID_BYTES = 16
};

/* The question about an image, stored so that it can be asked again. */
typedef struct image_question {
    const char *path; /* Points into `paths`. NULL if the image has no file. */
    uint32_t id_bytes;
    uint8_t id[ID_BYTES];
    bool is_main_image;
} image_question;

typedef struct image_entry {
    const void *_Atomic image; /* MonoImage*. NULL after sj_mono_forget_image. */
    _Atomic uint32_t reply;    /* Index of the latest reply in `replies`. */
    image_question question;
    uint32_t first_function; /* From the latest reply that recorded the assembly. */
    uint32_t count;
} image_entry;

static image_entry images[IMAGES_MAX];
static _Atomic uint32_t image_count;
/* A stored reply never changes. A later reply gets a new element. */
static sj_mono_reply replies[REPLIES_MAX];
static uint32_t reply_count;
static char paths[PATHS_BYTES];
static uint32_t paths_used;
static _Atomic uint32_t named_count;

_Atomic uint32_t sj_mono_assembly_count;

static const image_entry *find_image(const void *image)
{
    /* Pairs with the release store in store_image. */
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

/* Parses the text of a GUID into its bytes in the file, where its first three fields are
 * little-endian numbers. Returns the number of bytes, or 0 if the text is not a GUID. */
static uint32_t parse_id(const char *text, uint8_t id[ID_BYTES])
{
    static const uint8_t byte_order[ID_BYTES] = {3, 2, 1,  0,  5,  4,  7,  6,
                                                 8, 9, 10, 11, 12, 13, 14, 15};
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
        id[byte_order[used++]] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    return used == ID_BYTES ? ID_BYTES : 0;
}

static const sj_mono_reply *latest_reply(const image_entry *entry)
{
    /* Pairs with the release store in store_reply. */
    return &replies[atomic_load_explicit(&entry->reply, memory_order_acquire)];
}

/* Returns the reply with pointers to the parts of its memory. */
static sj_mono_reply parse_reply(const sj_mono_assembly *reply)
{
    return (sj_mono_reply){
        .first_function = reply->first_function,
        .count = reply->count,
        .is_unreadable = reply->is_unreadable,
        .has_lines = reply->has_lines,
        .wanted = reply->wanted,
        .value_count = reply->value_count,
        .values = (const sj_link_method_values *)(const void *)(reply->wanted +
                                                                (reply->count + 31) / 32 * 4)};
}

/* Stores a reply as the latest one. Returns false if the table is full. The caller holds the lock.
 */
static bool store_reply(image_entry *entry, const sj_mono_assembly *reply)
{
    if (reply_count == REPLIES_MAX) {
        return false;
    }
    replies[reply_count] = parse_reply(reply);
    if (reply->first_function != 0) {
        entry->first_function = reply->first_function;
        entry->count = reply->count;
    }
    atomic_store_explicit(&entry->reply, reply_count++, memory_order_release);
    return true;
}

/* Copies the path, because an image may be unloaded while the recorder is asked again. */
static const char *copy_path(const char *path)
{
    const size_t bytes = path != NULL ? strlen(path) + 1 : 0;
    if (bytes == 0 || bytes > PATHS_BYTES - paths_used) {
        return NULL;
    }
    char *kept = paths + paths_used;
    memcpy(kept, path, bytes);
    paths_used += (uint32_t)bytes;
    return kept;
}

/* Stores an image and its reply. Returns its entry, or NULL if a table is full. Sets `*is_new` to
 * true if no other thread has stored the image before. The caller holds the lock. */
static const image_entry *store_image(const void *image, const image_question *question,
                                      const sj_mono_assembly *reply, bool *is_new)
{
    const image_entry *known = find_image(image);
    const uint32_t index = atomic_load(&image_count);
    if (known != NULL || index == IMAGES_MAX || !store_reply(&images[index], reply)) {
        return known;
    }
    images[index].question = *question;
    images[index].question.path = copy_path(question->path);
    atomic_store(&images[index].image, image);
    atomic_store_explicit(&image_count, index + 1, memory_order_release);
    atomic_fetch_add(&sj_mono_assembly_count, 1);
    *is_new = true;
    return &images[index];
}

static bool is_main_image(void *image)
{
    const void *main_assembly = sj_mono_runtime.main_assembly();
    return main_assembly != NULL ? sj_mono_runtime.image_assembly(image) == main_assembly
                                 : sj_mono_runtime.image_entry_point(image) != 0;
}

static void free_reply(const sj_mono_assembly *reply)
{
    if (reply->wanted != NULL) {
        (void)sj_sys_unmap(reply->wanted, sj_mono_assembly_bytes(reply->count, reply->value_count));
    }
}

static bool ask_recorder(const image_question *question, sj_mono_assembly *reply)
{
    return sj_mono_ask_assembly(question->path, question->id, question->id_bytes,
                                question->is_main_image, reply);
}

/* Asks the recorder about a new image and stores the reply. Returns NULL if the recorder did not
 * reply, or if a table is full. */
static const image_entry *ask_about_image(void *image, bool *is_new)
{
    sj_mono_assembly reply = {0};
    image_question question = {.is_main_image = is_main_image(image)};
    const char *path = sj_mono_runtime.image_filename(image);
    question.id_bytes = parse_id(sj_mono_runtime.image_guid(image), question.id);
    if (sj_mono_runtime.image_is_dynamic(image) == 0 && path != NULL && path[0] == '/') {
        question.path = path;
    }
    if (question.path == NULL) {
        reply.is_unreadable = true;
    } else if (!ask_recorder(&question, &reply)) {
        return NULL;
    }
    const image_entry *kept = NULL;
    if (sj_owner_lock_acquire(&sj_mono_lock)) {
        kept = store_image(image, &question, &reply, is_new);
        sj_owner_lock_free(&sj_mono_lock);
    }
    if (!*is_new) {
        free_reply(&reply); /* Another thread has stored the image before, or a table is full. */
    }
    return kept;
}

const sj_mono_reply *sj_mono_ask_about_image(void *image, const char **path)
{
    bool is_new = false;
    if (image == NULL || find_image(image) != NULL) {
        return NULL;
    }
    const image_entry *kept = ask_about_image(image, &is_new);
    *path = is_new ? kept->question.path : NULL;
    return *path != NULL ? latest_reply(kept) : NULL;
}

bool sj_mono_ask_by_path(const char *path, const char *id, sj_mono_reply *reply)
{
    static const char program[] = ".exe";
    const size_t bytes = strlen(path);
    sj_mono_assembly assembly = {0};
    image_question question = {.path = path};
    question.id_bytes = parse_id(id, question.id);
    question.is_main_image =
        bytes >= sizeof(program) && strcmp(path + bytes - (sizeof(program) - 1), program) == 0;
    if (!ask_recorder(&question, &assembly)) {
        return false;
    }
    *reply = parse_reply(&assembly);
    return true;
}

static bool is_wanted(const sj_mono_reply *reply, uint32_t row)
{
    return reply->first_function != 0 && row - 1 < reply->count &&
           (reply->wanted[(row - 1) / 8] >> (row - 1) % 8 & 1) != 0;
}

/* Asks the recorder again about an image, and stores the reply. */
static void refresh_image(image_entry *entry)
{
    sj_mono_assembly reply = {0};
    bool is_kept = false;
    if (entry->question.path == NULL || !ask_recorder(&entry->question, &reply)) {
        return;
    }
    if (sj_owner_lock_acquire(&sj_mono_lock)) {
        is_kept = store_reply(entry, &reply);
        sj_owner_lock_free(&sj_mono_lock);
    }
    if (!is_kept) {
        free_reply(&reply);
    }
}

/* A method that no file lists stays selected. */
bool sj_mono_is_wanted(uint32_t function)
{
    for (uint32_t i = 0; i < atomic_load(&image_count); i++) {
        const image_entry *entry = &images[i];
        if (entry->first_function != 0 && function - entry->first_function < entry->count) {
            return is_wanted(latest_reply(entry), function - entry->first_function + 1);
        }
    }
    return true;
}

void sj_mono_ask_again(void)
{
    for (uint32_t i = 0; i < atomic_load(&image_count); i++) {
        if (atomic_load(&images[i].image) != NULL) {
            refresh_image(&images[i]);
        }
    }
}

/* Copies the name of a method from "(wrapper dynamic-method) object:Name (int)" or "Class:Name
 * (int)". Leaves out the blank before "(", because names from files have none. Returns false for
 * other kinds of wrappers, which are not methods of the program. */
static bool copy_method_name(const char *full, char name[NAME_BYTES])
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

/* A method that no file lists. It is identified by its name, because the runtime may reuse the
 * address of a freed method at once. */
typedef struct named_method {
    _Atomic uint64_t identity; /* Hash of container and name; 0 if free. Written last. */
    uint32_t function;         /* 0 if the method is not recorded. */
} named_method;

static named_method named[NAMED_CAPACITY];

static uint64_t hash_identity(const char *container, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *container != '\0'; container++) {
        hash = (hash ^ (uint8_t)*container) * UINT64_C(0x100000001b3);
    }
    hash =
        (hash ^ 0xff) * UINT64_C(0x100000001b3); /* A separator: UTF-8 never contains this byte. */
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    }
    return hash != 0 ? hash : 1;
}

/* Returns the entry of an identity, or the free entry in which to store it. The table is never
 * full. */
static named_method *find_named(uint64_t identity)
{
    uint64_t index = identity ^ identity >> 32;
    for (;; index++) {
        named_method *entry = &named[index % NAMED_CAPACITY];
        /* Pairs with the release store in store_named. */
        const uint64_t found = atomic_load_explicit(&entry->identity, memory_order_acquire);
        if (found == identity || found == 0) {
            return entry;
        }
    }
}

static void store_named(uint64_t identity, uint32_t function)
{
    if (!sj_owner_lock_acquire(&sj_mono_lock)) {
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

/* Returns the function id of a method that no file lists, or 0 if it is not recorded. Asks the
 * recorder once per name. */
static uint32_t name_method(void *method, void *image)
{
    char name[NAME_BYTES];
    uint32_t function = 0;
    char *full = sj_mono_runtime.method_full_name(method, 1);
    const bool is_method = full != NULL && copy_method_name(full, name);
    sj_mono_runtime.free(full);
    if (!is_method) {
        return 0;
    }
    const char *container = sj_mono_runtime.image_name(image);
    container = container != NULL && container[0] != '\0' ? container : "?";
    const uint64_t identity = hash_identity(container, name);
    const named_method *known = find_named(identity);
    if (atomic_load(&known->identity) == identity) {
        return known->function;
    }
    if (atomic_load(&named_count) >= NAMED_MAX || !sj_mono_ask_method(container, name, &function)) {
        atomic_fetch_add(&sj_mono_refused, 1);
        return 0;
    }
    store_named(identity, function);
    return function;
}

/* Adds the values that the reply selects for a method. */
static void find_values(const sj_mono_reply *reply, uint32_t row, sj_mono_selection *selection)
{
    const uint32_t low = SJ_BISECT(0, reply->value_count, i, reply->values[i].token < row);
    if (low < reply->value_count && reply->values[low].token == row) {
        _Static_assert(sizeof(selection->descriptors) == SJ_LINK_METHOD_VALUES, "one a byte");
        memcpy(&selection->descriptors, reply->values[low].descriptors,
               sizeof(selection->descriptors));
        selection->in_place = reply->values[low].in_place != 0;
    }
}

sj_mono_selection sj_mono_selection_of_row(const sj_mono_reply *reply, uint32_t row)
{
    if (!is_wanted(reply, row)) {
        return (sj_mono_selection){0};
    }
    sj_mono_selection selection = {.function = reply->first_function + row - 1,
                                   .has_lines = reply->has_lines};
    find_values(reply, row, &selection);
    return selection;
}

sj_mono_selection sj_mono_selection_of(void *method)
{
    const uint32_t token = sj_mono_runtime.method_token(method);
    const uint32_t row = token & ((1U << TOKEN_BITS) - 1);
    void *image = sj_mono_runtime.class_image(sj_mono_runtime.method_class(method));
    if (token >> TOKEN_BITS != TOKEN_TABLE || row == 0) {
        return (sj_mono_selection){.function = name_method(method, image)};
    }
    const image_entry *entry = find_image(image);
    if (entry == NULL) {
        bool is_new = false;
        entry = ask_about_image(image, &is_new);
    }
    if (entry == NULL) {
        atomic_fetch_add(&sj_mono_refused, 1);
        return (sj_mono_selection){0};
    }
    const sj_mono_reply *reply = latest_reply(entry);
    return reply->is_unreadable ? (sj_mono_selection){.function = name_method(method, image)}
                                : sj_mono_selection_of_row(reply, row);
}

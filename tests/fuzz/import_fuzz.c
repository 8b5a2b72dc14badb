/* Imports a session from a file that was changed. The input is a list of u32 offset and u8 byte,
 * written into a valid file. An import may fail. What it imports must be verifiable. */
#include "collector-server/maintenance/session_copy.h"

#include "collector-server/store/database.h"
#include "collector-server/store/verify.h"
#include "proto/base/cursor.h"
#include "tests/collector-server/store/frame_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 400, CHANGE_BYTES = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct file_bytes {
    uint8_t *bytes;
    size_t size;
} file_bytes;

static file_bytes sound; /* a database with a session */
static file_bytes empty; /* a database without a session */
static char source[64], target[64];

static void must(bool holds, const sj_error *error)
{
    if (!holds) {
        fprintf(stderr, "import_fuzz: %s\n", error->text);
        abort();
    }
}

static void remove_file(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char name[80];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void put(sj_store *store, sj_slice frame)
{
    sj_frame_view view;
    bool duplicate = false;
    sj_error error = {0};
    must(sj_frame_read(frame, &view) == SJ_OK &&
             sj_store_apply(store, &view, NULL, &duplicate, &error) == SJ_OK,
         &error);
}

static file_bytes read_file(const char *path)
{
    file_bytes made = {0};
    FILE *file = fopen(path, "rb");
    must(file != NULL && fseek(file, 0, SEEK_END) == 0, &(sj_error){.text = "no file"});
    made.size = (size_t)ftell(file);
    made.bytes = malloc(made.size);
    rewind(file);
    must(made.bytes != NULL && fread(made.bytes, 1, made.size, file) == made.size,
         &(sj_error){.text = "cannot read it"});
    fclose(file);
    return made;
}

static void write_file(const char *path, file_bytes written)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(written.bytes, 1, written.size, file) == written.size &&
             fclose(file) == 0,
         &(sj_error){.text = "cannot write it"});
}

static void make_empty(void)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    remove_file(target);
    must(sj_database_open(target, SJ_DATABASE_CREATE, &database, &error) == SJ_OK, &error);
    sqlite3_close(database);
    empty = read_file(target);
}

static void make_sound(void)
{
    frame_maker maker;
    sj_store *store = NULL;
    sj_error error = {0};
    snprintf(source, sizeof(source), "/dev/shm/import_fuzz.%d.db", (int)getpid());
    snprintf(target, sizeof(target), "/dev/shm/import_fuzz.%d.target", (int)getpid());
    remove_file(source);
    const sj_store_options options = {.path = source, .create = true};
    frame_maker_init(&maker, 1);
    must(sj_store_open(&options, &store, &error) == SJ_OK && sj_store_begin(store, &error) == SJ_OK,
         &error);
    put(store, frame_maker_hello(&maker));
    put(store, frame_maker_session(&maker));
    put(store, frame_maker_module(&maker));
    put(store, frame_maker_thread(&maker));
    put(store, frame_maker_block(&maker, EVENTS, SJ_BLOCK_LAST));
    put(store, frame_maker_mark(&maker, 1));
    put(store, frame_maker_end(&maker));
    must(sj_store_commit(store, &error) == SJ_OK, &error);
    sj_store_close(store);
    frame_maker_deinit(&maker);
    sound = read_file(source);
}

static void write_changed(const uint8_t *data, size_t size)
{
    const file_bytes changed = {.bytes = malloc(sound.size), .size = sound.size};
    sj_reader reader = sj_reader_of(data, size);
    must(changed.bytes != NULL, &(sj_error){.text = "no memory"});
    memcpy(changed.bytes, sound.bytes, sound.size);
    while (sj_reader_left(&reader) >= CHANGE_BYTES) {
        const uint32_t place = sj_read_u32(&reader);
        changed.bytes[place % sound.size] = sj_read_u8(&reader);
    }
    write_file(source, changed);
    free(changed.bytes);
}

/* Verifies what was imported. */
static void verify(void)
{
    sj_store *store = NULL;
    sj_verified verified;
    sj_error error = {0};
    const sj_store_options options = {.path = target};
    const sj_verify_options check_options = {.check_only = true};
    must(sj_store_open(&options, &store, &error) == SJ_OK, &error);
    must(sj_store_verify(store, &check_options, &verified, &error) == SJ_OK, &error);
    sj_store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sqlite3 *database = NULL;
    sj_copied_session copied = {0};
    sj_error error = {0};
    if (sound.bytes == NULL) {
        make_sound();
        make_empty();
    }
    remove_file(source);
    remove_file(target);
    write_changed(data, size);
    write_file(target, empty);
    must(sj_database_open(target, SJ_DATABASE_WRITE, &database, &error) == SJ_OK, &error);
    const sj_status status = sj_session_copy(source, 1, database, &copied, &error);
    sqlite3_close(database);
    if (status == SJ_OK) {
        verify();
    } else if (error.text[0] == '\0') {
        abort();
    }
    remove_file(source);
    remove_file(target);
    return 0;
}
